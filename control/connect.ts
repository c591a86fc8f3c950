import { hostname } from "node:os";
import * as z from "zod";
import { type ContextInput, resolveContext } from "./context.js";
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
  name: z.string().min(1).optional(),
});

/** A client of the bus that `farhand up` started, or of FARHAND_URL. Nothing dials until the first request. */
export const connect = async (options: ConnectOptions = {}): Promise<Farhand> => {
  const given = readOptions(schema, options);
  const { url, workspace } = resolveContext(given, process.env);
  const rpc = createNatsRpc({ servers: url.split(","), name: given.name ?? `farhand/${hostname()}` });
  return createFarhand({ rpc, workspace });
};
