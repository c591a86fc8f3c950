import { homedir } from "node:os";
import { join } from "node:path";

/** FARHAND_HOME, or a directory of ours where the system keeps such state. */
export const farhandHome = (env: NodeJS.ProcessEnv): string =>
  env["FARHAND_HOME"] ?? join(env["XDG_STATE_HOME"] ?? join(homedir(), ".local", "state"), "farhand");
