import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { FarhandError } from "../proto/farhand-error.js";
import { farhandHome, privateDirectory } from "../proto/home.js";

/** How to reach the bus, as `farhand up` leaves it for the other commands. */
export interface Context {
  readonly url: string;
  readonly workspace: string;
}

const schema = z.object({ url: z.string().min(1), workspace: z.string().min(1) });

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
}

/** What is given here, else the environment, else what `farhand up` left. */
export const resolveContext = (given: ContextInput, env: NodeJS.ProcessEnv): Context => {
  const url = given.url ?? env["FARHAND_URL"];
  const workspace = given.workspace ?? env["FARHAND_WORKSPACE"];
  if (url !== undefined) return { url, workspace: workspace ?? "default" };
  const found = readContext(farhandHome(env));
  if (found === undefined) {
    throw new FarhandError("control_unavailable", "no bus is known here", {
      advice: "run farhand up, or set FARHAND_URL (and FARHAND_CREDS)",
    });
  }
  return { ...found, workspace: workspace ?? found.workspace };
};
