import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, chmod, lstat, open, readlink, realpath, rename, unlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { FarhandError } from "../../../proto/farhand-error.js";
import { errnoOf, osFault } from "../os-fault.js";
import { makeDirectories } from "./change.js";
import { type Info, kindOf, toInfo } from "./file-info.js";
import { digestOf, notAFile, withFile } from "./read.js";

export interface WriteRequest {
  readonly path: string;
  readonly data: Uint8Array;
  /** SHA-256 that the present contents must have; empty for any. */
  readonly ifMatch: string;
  readonly ifNoneMatch: boolean;
  readonly append: boolean;
  readonly mode: number | undefined;
  readonly createParents: boolean;
}

export interface Written {
  readonly path: string;
  readonly size: bigint;
  readonly sha256: string;
  readonly created: boolean;
}

/** What a link says, or undefined for anything else, and for nothing at all. */
const linkAt = async (path: string): Promise<string | undefined> => {
  try {
    return await readlink(path);
  } catch (error) {
    if (errnoOf(error) === "EINVAL" || errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
};

/** Where the bytes go: through links to what they point to, which need not exist yet. */
const targetOf = async (path: string): Promise<string> => {
  try {
    return await realpath(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  const directory = await realpath(dirname(path));
  const link = await linkAt(join(directory, basename(path)));
  return link === undefined ? join(directory, basename(path)) : targetOf(resolve(directory, link));
};

const present = async (path: string): Promise<Info | undefined> => {
  try {
    const stats = await lstat(path, { bigint: true });
    if (kindOf(stats) !== "file") throw notAFile(path, kindOf(stats));
    return toInfo(path, stats);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
};

const checkConditions = async (
  request: WriteRequest,
  target: string,
  existing: Info | undefined,
): Promise<void> => {
  if (request.ifNoneMatch && existing !== undefined) {
    throw new FarhandError("conflict", `${target} exists already`, {
      detail: { path: target, errno: "EEXIST" },
    });
  }
  if (request.ifMatch === "") return;
  const sha256 = existing === undefined ? "" : await withFile(target, digestOf);
  if (sha256 === request.ifMatch.toLowerCase()) return;
  throw new FarhandError(
    "conflict",
    `${target} ${existing === undefined ? "does not exist" : "has changed"}: it is not what ifMatch names`,
    {
      detail: { path: target, ifMatch: request.ifMatch, present: sha256 },
      advice: "read the file again and apply the change to what is there now",
    },
  );
};

const writeAll = async (file: FileHandle, data: Uint8Array): Promise<void> => {
  for (let done = 0; done < data.length;) {
    done += (await file.write(data, done, data.length - done)).bytesWritten;
  }
};

const flushDirectory = async (path: string): Promise<void> => {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
};

/** Only root may give files away: another user's file becomes the writer's. */
const keepOwner = async (file: FileHandle, { uid, gid }: Info): Promise<void> => {
  try {
    await file.chown(uid, gid);
  } catch (error) {
    if (errnoOf(error) !== "EPERM") throw error;
  }
};

/** The old file or the new one, never a part: a temporary file beside it, flushed, then renamed. */
const replace = async (
  request: WriteRequest,
  target: string,
  existing: Info | undefined,
): Promise<Written> => {
  const temporary = join(dirname(target), `.farhand-${randomBytes(8).toString("hex")}.tmp`);
  const file = await open(temporary, "wx", existing?.mode ?? request.mode ?? 0o666);
  try {
    try {
      if (existing !== undefined) {
        await keepOwner(file, existing);
        await file.chmod(existing.mode);
      } else if (request.mode !== undefined) {
        await file.chmod(request.mode);
      }
      await writeAll(file, request.data);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, target);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await flushDirectory(dirname(target));
  return {
    path: target,
    size: BigInt(request.data.length),
    sha256: createHash("sha256").update(request.data).digest("hex"),
    created: existing === undefined,
  };
};

const append = async (
  request: WriteRequest,
  target: string,
  existing: Info | undefined,
): Promise<Written> => {
  const file = await open(
    target,
    constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK,
    request.mode ?? 0o666,
  );
  try {
    const before = (await file.stat({ bigint: true })).size;
    try {
      await writeAll(file, request.data);
      await file.sync();
    } catch (error) {
      await file.truncate(Number(before));
      throw error;
    }
    if (existing === undefined && request.mode !== undefined) await chmod(target, request.mode);
    return {
      path: target,
      size: before + BigInt(request.data.length),
      sha256: "",
      created: existing === undefined,
    };
  } finally {
    await file.close();
  }
};

const told = async <T>(path: string, task: () => Promise<T>): Promise<T> => {
  try {
    return await task();
  } catch (error) {
    throw osFault(error, { subject: path, detail: { path }, ran: "no" });
  }
};

/** The file that a write goes to, the same one for all names of it. */
export const writeTarget = ({ path, createParents }: WriteRequest): Promise<string> =>
  told(path, async () => {
    if (createParents) await makeDirectories(dirname(path), 0o777);
    return targetOf(path);
  });

export const writeFile = (request: WriteRequest, target: string): Promise<Written> =>
  told(request.path, async () => {
    const existing = await present(target);
    await checkConditions(request, target, existing);
    return (request.append ? append : replace)(request, target, existing);
  });
