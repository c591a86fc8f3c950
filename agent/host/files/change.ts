import { chmod, lstat, mkdir, rename, rm, rmdir, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { FarhandError } from "../../../proto/farhand-error.js";
import { errnoOf, osFault } from "../os-fault.js";
import { type Info, infoAt } from "./file-info.js";

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

/**
 * Makes missing parents too, and says whether it made anything. Node's own recursive mkdir never
 * returns where a parent exists but takes no entries, as in /proc.
 */
export const makeDirectories = async (path: string, mode: number): Promise<boolean> => {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST" && (await stat(path)).isDirectory()) return false;
    if (errnoOf(error) !== "ENOENT" || path === dirname(path)) throw error;
    if (!(await makeDirectories(dirname(path), DEFAULT_MODE))) throw error;
    await mkdir(path, { mode });
    return true;
  }
};

export const makeDirectory = async (
  path: string,
  options: { parents: boolean; mode: number | undefined },
): Promise<boolean> => {
  const mode = options.mode ?? DEFAULT_MODE;
  try {
    if (options.parents) return await makeDirectories(path, mode);
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    throw osFault(error, { subject: path, detail: { path } });
  }
};

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
    const missing = errnoOf(error) === "ENOENT" && (await exists(from)) ? to : from;
    throw osFault(error, { subject: missing, detail: { from, to } });
  }
};

export const removePath = async (
  path: string,
  options: { recursive: boolean; missingOk: boolean },
): Promise<boolean> => {
  try {
    const isDirectory = (await lstat(path)).isDirectory();
    if (!isDirectory) await unlink(path);
    else if (options.recursive) await rm(path, { recursive: true });
    else await rmdir(path);
    return true;
  } catch (error) {
    if (options.missingOk && errnoOf(error) === "ENOENT") return false;
    throw osFault(error, { subject: path, detail: { path } });
  }
};

export const changeMode = async (path: string, mode: number): Promise<Info> => {
  try {
    await chmod(path, mode);
  } catch (error) {
    throw osFault(error, { subject: path, detail: { path } });
  }
  return infoAt(path);
};
