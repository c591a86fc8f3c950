import { hostname } from "node:os";
import * as z from "zod";
import { type ContextInput, resolveContext } from "./context.js";
import { readCredentials } from "./credentials.js";
import { createFarhand, type Farhand } from "./farhand.js";
import { readOptions } from "./options.js";
import { createNatsRpc } from "./wire/nats-rpc.js";

export interface ConnectOptions extends ContextInput {
  /** Shown in the server's list of connections. */
  readonly name?: string | undefined;
}

const schema = z.strictObject({
  url: z.string().min(1).optional(),
  workspace: z.string().min(1).optional(),
  creds: z.string().min(1).optional(),
  caFile: z.string().min(1).optional(),
  name: z.string().min(1).optional(),
});

/**
 * A client of the bus that `farhand up` started, or of FARHAND_URL with FARHAND_CREDS. Nothing
 * dials until the first request.
 */
export const connect = async (options: ConnectOptions = {}): Promise<Farhand> => {
  const given = readOptions(schema, options);
  const { url, workspace, creds, caFile } = resolveContext(given, process.env);
  const credentials = creds === undefined ? undefined : readCredentials(creds);
  const name = given.name ?? `farhand/${hostname()}`;
  const rpc = createNatsRpc({ servers: url.split(","), name, credentials, caFile });
  // Credentials are for one workspace, which is then the one meant where none is named.
  return createFarhand({
    rpc,
    workspace: workspace ?? credentials?.certificate.workspace ?? "default",
    credentials,
  });
};
