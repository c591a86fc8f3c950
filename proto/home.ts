import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** FARHAND_HOME, or a directory of ours where the system keeps such state. */
export const farhandHome = (env: NodeJS.ProcessEnv): string =>
  env["FARHAND_HOME"] ?? join(env["XDG_STATE_HOME"] ?? join(homedir(), ".local", "state"), "farhand");

/** Node's own recursive mkdir never returns where a parent exists but takes no entries, as in /proc. */
const makeDirectories = (path: string): void => {
  if (existsSync(path)) return;
  makeDirectories(dirname(path));
  mkdirSync(path, { mode: 0o700 });
};

/** Makes a directory, with its parents, that only its owner may enter. */
export const privateDirectory = (path: string): string => {
  makeDirectories(path);
  chmodSync(path, 0o700);
  return path;
};
