import type { BigIntStats } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { basename } from "node:path";
import { osFault } from "../os-fault.js";

export type Kind = "other" | "file" | "directory" | "symlink" | "fifo" | "socket" | "device";

export interface Info {
  readonly path: string;
  readonly name: string;
  readonly kind: Kind;
  readonly size: bigint;
  readonly modifiedMs: bigint;
  readonly changedMs: bigint;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly linkTarget: string;
}

export const kindOf = (stats: BigIntStats): Kind => {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "directory";
  if (stats.isSymbolicLink()) return "symlink";
  if (stats.isFIFO()) return "fifo";
  if (stats.isSocket()) return "socket";
  return stats.isBlockDevice() || stats.isCharacterDevice() ? "device" : "other";
};

export const toInfo = (path: string, stats: BigIntStats, linkTarget = ""): Info => ({
  path,
  name: basename(path),
  kind: kindOf(stats),
  size: stats.size,
  modifiedMs: stats.mtimeMs,
  changedMs: stats.ctimeMs,
  mode: Number(stats.mode & 0o7777n),
  uid: Number(stats.uid),
  gid: Number(stats.gid),
  linkTarget,
});

/** What is at a path itself, links not followed. */
export const infoAt = async (path: string): Promise<Info> => {
  try {
    const stats = await lstat(path, { bigint: true });
    return toInfo(path, stats, stats.isSymbolicLink() ? await readlink(path) : "");
  } catch (error) {
    throw osFault(error, { subject: path, detail: { path } });
  }
};
