import { homedir } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { FarhandError } from "../../../proto/farhand-error.js";
import { LIMITS } from "../../../proto/limits.js";

/** A path as a caller wrote it, made absolute: relative to the root, with `~` expanded. */
export const absolutePath = (root: string, path: string): string => {
  if (path.includes("\0"))
    throw new FarhandError("invalid", `path ${JSON.stringify(path)} holds a NUL character`);
  if (Buffer.byteLength(path) > LIMITS.pathBytes) {
    throw new FarhandError("invalid", `the path is longer than ${LIMITS.pathBytes} bytes`);
  }
  if (path === "~" || path.startsWith("~/")) return resolve(homedir(), path.slice(2));
  return isAbsolute(path) ? resolve(path) : resolve(root, path);
};
