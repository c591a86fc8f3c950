import { chmod, lstat, mkdir, rename, rm, rmdir, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { FarhandError } from "../../../proto/farhand-error.js";
import { errnoOf, osFault } from "../os-fault.js";
import { type Info, toInfo } from "./file-info.js";

const DEFAULT_MODE = 0o777;

const exists = async (path: string): Promise<boolean> => {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
};

/** Says whether it made the directory; one that exists is all right. */
const ensureDirectory = async (path: string, mode: number): Promise<boolean> => {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST" && (await stat(path)).isDirectory()) return false;
    throw error;
  }
};

/**
 * Makes missing parents too, and says whether it made the directory. Node's own recursive mkdir
 * never returns where a parent exists but takes no entries, as in /proc.
 */
export const makeDirectories = async (path: string, mode: number): Promise<boolean> => {
  try {
    return await ensureDirectory(path, mode);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT" || path === dirname(path)) throw error;
  }
  await makeDirectories(dirname(path), DEFAULT_MODE);
  return ensureDirectory(path, mode);
};

export const makeDirectory = async (
  path: string,
  options: { parents: boolean; mode: number | undefined },
): Promise<boolean> => {
  const mode = options.mode ?? DEFAULT_MODE;
  try {
    if (options.parents && !(await makeDirectories(path, mode))) return false;
    if (!options.parents) await mkdir(path, { mode });
    // The umask takes bits from a mode given to mkdir.
    if (options.mode !== undefined) await chmod(path, options.mode);
    return true;
  } catch (error) {
    throw osFault(error, { subject: path, detail: { path } });
  }
};

/** What the target is to blame for, where the source is in order. */
const TARGET_ERRNOS = new Set(["ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY"]);

const isToBlame = async (errno: string | undefined, from: string): Promise<boolean> =>
  errno !== undefined && TARGET_ERRNOS.has(errno) && (await exists(from).catch(() => false));

export const movePath = async (from: string, to: string, options: { overwrite: boolean }): Promise<void> => {
  try {
    if (!options.overwrite && (await exists(to))) {
      throw new FarhandError("conflict", `${to} exists already`, {
        detail: { path: to, errno: "EEXIST" },
        advice: "choose another name, or ask to overwrite it",
      });
    }
    await rename(from, to);
  } catch (error) {
    if (errnoOf(error) === "EXDEV") {
      throw new FarhandError(
        "os",
        `${from} and ${to} are on different file systems, between which nothing can be moved in one step`,
        {
          ran: "no",
          detail: { errno: "EXDEV", from, to },
          advice: "copy it and remove the original",
        },
      );
    }
    const subject = (await isToBlame(errnoOf(error), from)) ? to : from;
    throw osFault(error, { subject, detail: { from, to }, ran: "no" });
  }
};

export const removePath = async (
  path: string,
  options: { recursive: boolean; missingOk: boolean },
): Promise<boolean> => {
  let isTree = false;
  try {
    const isDirectory = (await lstat(path)).isDirectory();
    isTree = isDirectory && options.recursive;
    if (isTree) await rm(path, { recursive: true });
    else await (isDirectory ? rmdir : unlink)(path);
    return true;
  } catch (error) {
    if (options.missingOk && errnoOf(error) === "ENOENT") return false;
    // A tree is removed entry by entry, and some may have gone before the error.
    throw osFault(error, { subject: path, detail: { path }, ran: isTree ? "maybe" : "no" });
  }
};

export const changeMode = async (path: string, mode: number): Promise<Info> => {
  try {
    await chmod(path, mode);
    // Links are followed, by both.
    return toInfo(path, await stat(path, { bigint: true }));
  } catch (error) {
    throw osFault(error, { subject: path, detail: { path } });
  }
};
