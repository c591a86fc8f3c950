import {
  chmodSync,
  existsSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { FarhandError } from "../../proto/farhand-error.js";
import { privateDirectory } from "../../proto/home.js";

/** Files with secrets: whole or not at all, and for their owner only. */

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

const writeBeside = (path: string, text: string): string => {
  // A directory that is there is somebody's own, perhaps shared: only a new one is closed to others.
  if (!existsSync(dirname(path))) privateDirectory(dirname(path));
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, text, { mode: 0o600, flag: "wx", flush: true });
  chmodSync(temporary, 0o600);
  return temporary;
};

const failed = (path: string, error: unknown): FarhandError =>
  new FarhandError("denied", `${path} cannot be written: ${reasonOf(error)}`, {
    cause: error,
    advice: "make its directory writable for this user, or name another with FARHAND_HOME",
  });

/** Replaces whatever is there. */
export const replacePrivateFile = (path: string, text: string): void => {
  try {
    renameSync(writeBeside(path, text), path);
  } catch (error) {
    throw failed(path, error);
  }
};

const exists = (path: string, cause?: unknown): FarhandError =>
  new FarhandError("conflict", `${path} exists already`, {
    cause,
    advice: "it is not overwritten: choose another name, or move it away",
  });

/** For those who must know before they do what cannot be undone. */
export const refuseToOverwrite = (path: string): void => {
  if (existsSync(path)) throw exists(path);
};

/** Refuses, with `conflict`, to replace anything: of two that create at once, one wins. */
export const createPrivateFile = (path: string, text: string): void => {
  let temporary: string | undefined;
  try {
    temporary = writeBeside(path, text);
    linkSync(temporary, path);
  } catch (error) {
    if (hasCode(error, "EEXIST")) throw exists(path, error);
    throw failed(path, error);
  } finally {
    if (temporary !== undefined) rmSync(temporary, { force: true });
  }
};

/** Undefined if there is none; refused if others may read it. */
export const readPrivateFile = (path: string, ifRead: string): string | undefined => {
  let text: string;
  let mode: number;
  try {
    text = readFileSync(path, "utf8");
    mode = statSync(path).mode & 0o777;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw new FarhandError("denied", `${path} cannot be read: ${reasonOf(error)}`, {
      cause: error,
      advice: "run as the user who owns it, or name another place with FARHAND_HOME",
    });
  }
  if ((mode & 0o077) !== 0) {
    throw new FarhandError("denied", `${path} can be read by others (mode ${mode.toString(8)})`, {
      advice: `chmod 600 ${path}, and ${ifRead} if somebody may have read it`,
    });
  }
  return text;
};
