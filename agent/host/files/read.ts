import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { FarhandError } from "../../../proto/farhand-error.js";
import { osFault } from "../os-fault.js";
import { type Info, infoAt, kindOf, toInfo } from "./file-info.js";

const KIND_WORDS = {
  other: "not a file",
  file: "a file",
  directory: "a directory",
  symlink: "a link",
  fifo: "a named pipe",
  socket: "a socket",
  device: "a device",
} as const;

export const notAFile = (path: string, kind: Info["kind"]): FarhandError =>
  new FarhandError("invalid", `${path} is ${KIND_WORDS[kind]}, not a regular file`, {
    detail: { path, kind, ...(kind === "directory" ? { errno: "EISDIR" } : {}) },
    advice: kind === "directory" ? "list it instead" : "name a regular file",
  });

/** Opens a regular file without ever waiting for one (a named pipe would). */
export const withFile = async <T>(
  path: string,
  use: (file: FileHandle, info: Info) => Promise<T>,
): Promise<T> => {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stats = await file.stat({ bigint: true });
    if (kindOf(stats) !== "file") throw notAFile(path, kindOf(stats));
    return await use(file, toInfo(path, stats));
  } catch (error) {
    // Opening a socket says ENXIO where opening a directory succeeds.
    if (error instanceof Error && "code" in error && error.code === "ENXIO") throw notAFile(path, "socket");
    throw osFault(error, { subject: path, detail: { path } });
  } finally {
    await file?.close();
  }
};

const DIGEST_CHUNK = 128 * 1024;

/** SHA-256 of a file in constant memory. */
export const digestOf = async (file: FileHandle): Promise<string> => {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(DIGEST_CHUNK);
  for (let position = 0; ;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return hash.digest("hex");
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
};

export const statPath = async (
  path: string,
  options: { follow: boolean; digest: boolean },
): Promise<{ info: Info; sha256: string }> => {
  if (options.digest) return withFile(path, async (file, info) => ({ info, sha256: await digestOf(file) }));
  if (!options.follow) return { info: await infoAt(path), sha256: "" };
  try {
    return { info: toInfo(path, await stat(path, { bigint: true })), sha256: "" };
  } catch (error) {
    throw osFault(error, { subject: path, detail: { path } });
  }
};

export interface ReadRange {
  readonly offset: bigint;
  readonly length: number;
}

/** Reads by position, so that a part of a large file costs what the part costs. */
export const readRange = (path: string, { offset, length }: ReadRange) =>
  withFile(path, async (file, info) => {
    // One byte more than asked for tells the end from a cut, also where size says 0 (/proc).
    const known = info.size > 0n ? Number(info.size > offset ? info.size - offset : 0n) : length;
    const buffer = Buffer.allocUnsafe(Math.min(length, known) + 1);
    let filled = 0;
    while (filled < buffer.length) {
      const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, Number(offset) + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    const data = buffer.subarray(0, Math.min(filled, length));
    return { data, eof: filled <= length && filled < buffer.length, size: info.size };
  });
