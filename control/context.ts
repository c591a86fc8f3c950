import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { FarhandError } from "../proto/farhand-error.js";
import { farhandHome, privateDirectory } from "../proto/home.js";

/** How to reach the bus, as `farhand up` leaves it for the other commands. */
export interface Context {
  readonly url: string;
  /** The workspace meant where none is named. */
  readonly workspace?: string | undefined;
  /** A file of credentials; none on a bus that asks for none. */
  readonly creds?: string | undefined;
  /** The certificate that the servers' certificates must be signed by, where it is a private one. */
  readonly caFile?: string | undefined;
}

const schema = z.object({
  url: z.string().min(1),
  workspace: z.string().min(1).optional(),
  creds: z.string().min(1).optional(),
  caFile: z.string().min(1).optional(),
});

const contextPath = (home: string): string => join(home, "context.json");

export const writeContext = (home: string, context: Context): void => {
  privateDirectory(home);
  const temporary = `${contextPath(home)}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(context, null, 2)}\n`, { mode: 0o600 });
  chmodSync(temporary, 0o600);
  renameSync(temporary, contextPath(home));
};

export const removeContext = (home: string): void => rmSync(contextPath(home), { force: true });

const readContext = (home: string): Context | undefined => {
  let text: string;
  try {
    text = readFileSync(contextPath(home), "utf8");
  } catch {
    return undefined;
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new FarhandError("invalid", `${contextPath(home)} is not a farhand context`, {
      cause: error,
      advice: "run farhand up again, or remove the file",
    });
  }
};

export interface ContextInput {
  readonly url?: string | undefined;
  readonly workspace?: string | undefined;
  readonly creds?: string | undefined;
  readonly caFile?: string | undefined;
}

/** What is given here, else the environment, else what `farhand up` left. */
export const resolveContext = (given: ContextInput, env: NodeJS.ProcessEnv): Context => {
  const named = {
    url: given.url ?? env["FARHAND_URL"],
    workspace: given.workspace ?? env["FARHAND_WORKSPACE"],
    creds: given.creds ?? env["FARHAND_CREDS"],
    caFile: given.caFile ?? env["FARHAND_CA"],
  };
  if (named.url !== undefined && named.creds !== undefined) return { ...named, url: named.url };
  const left = readContext(farhandHome(env));
  // What `farhand up` left is for its own bus only.
  const own = named.url === undefined || named.url === left?.url ? left : undefined;
  const url = named.url ?? own?.url;
  if (url === undefined) {
    throw new FarhandError("control_unavailable", "no bus is known here", {
      advice: "run farhand up, or set FARHAND_URL and FARHAND_CREDS",
    });
  }
  return {
    url,
    // Credentials that are named here know their workspace better than what was left.
    workspace: named.workspace ?? (named.creds === undefined ? own?.workspace : undefined),
    creds: named.creds ?? own?.creds,
    caFile: named.caFile ?? own?.caFile,
  };
};
