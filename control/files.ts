import * as z from "zod";
import { FarhandError } from "../proto/farhand-error.js";
import { type FileInfo as WireFileInfo, FileKind } from "../proto/gen/files.js";
import { LIMITS } from "../proto/limits.js";
import type { CallOptions } from "./caller.js";
import type { MachineCall } from "./machine.js";
import { bytes, callFields, fileMode, int64, path, readOptions } from "./options.js";

export type FileKindName = "file" | "directory" | "symlink" | "fifo" | "socket" | "device" | "other";

export interface FileInfo {
  readonly path: string;
  readonly name: string;
  readonly kind: FileKindName;
  readonly size: number;
  readonly modified: Date;
  readonly changed: Date;
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Where a link points, as it is written in the link. */
  readonly linkTarget: string | null;
  /** Why this entry of a list could not be looked at; the other fields are then empty. */
  readonly problem: string | null;
}

export interface ReadOptions extends CallOptions {
  readonly offset?: number | undefined;
  /** Absent for all there is. */
  readonly length?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Write only if the file's present SHA-256 is this (as `write` and `stat` return it). */
  readonly ifMatch?: string | undefined;
  /** Write only if there is no such file. */
  readonly ifNoneMatch?: boolean | undefined;
  readonly append?: boolean | undefined;
  readonly mode?: number | undefined;
  readonly createParents?: boolean | undefined;
}

export interface Written {
  readonly path: string;
  readonly size: number;
  /** SHA-256 of the whole file; null for an append. */
  readonly sha256: string | null;
  readonly created: boolean;
}

export interface Page {
  readonly path: string;
  readonly entries: readonly FileInfo[];
  /** Give it as `cursor` to get the next page; null on the last one. */
  readonly next: string | null;
}

export interface Files {
  read(path: string, options?: ReadOptions & { format?: "text" | undefined }): Promise<string>;
  read(path: string, options: ReadOptions & { format: "bytes" }): Promise<Uint8Array>;
  read(path: string, options: ReadOptions & { format: "stream" }): Promise<AsyncIterable<Uint8Array>>;
  write(
    path: string,
    data: string | Uint8Array,
    options?: WriteOptions & { append?: false | undefined },
  ): Promise<Written & { sha256: string }>;
  write(path: string, data: string | Uint8Array, options?: WriteOptions): Promise<Written>;
  /** With `digest`, also the SHA-256 of the contents. */
  stat(
    path: string,
    options?: CallOptions & { follow?: boolean | undefined; digest?: boolean | undefined },
  ): Promise<FileInfo & { sha256: string | null }>;
  exists(path: string, options?: CallOptions): Promise<boolean>;
  /** One page, in order of name. */
  list(
    path: string,
    options?: CallOptions & { cursor?: string | undefined; limit?: number | undefined },
  ): Promise<Page>;
  /** All entries, page by page. */
  entries(path: string, options?: CallOptions): AsyncIterable<FileInfo>;
  makeDir(
    path: string,
    options?: CallOptions & { parents?: boolean | undefined; mode?: number | undefined },
  ): Promise<{ path: string; created: boolean }>;
  move(
    from: string,
    to: string,
    options?: CallOptions & { overwrite?: boolean | undefined },
  ): Promise<{ path: string }>;
  remove(
    path: string,
    options?: CallOptions & { recursive?: boolean | undefined; missingOk?: boolean | undefined },
  ): Promise<{ removed: boolean }>;
  chmod(path: string, mode: number, options?: CallOptions): Promise<FileInfo>;
}

const KINDS: Readonly<Record<FileKind, FileKindName>> = {
  [FileKind.OTHER]: "other",
  [FileKind.FILE]: "file",
  [FileKind.DIRECTORY]: "directory",
  [FileKind.SYMLINK]: "symlink",
  [FileKind.FIFO]: "fifo",
  [FileKind.SOCKET]: "socket",
  [FileKind.DEVICE]: "device",
  [FileKind.UNRECOGNIZED]: "other",
};

const toInfo = (info: WireFileInfo | undefined): FileInfo => {
  if (info === undefined) throw new FarhandError("protocol", "the answer has no file in it");
  return {
    path: info.path,
    name: info.name,
    kind: KINDS[info.kind],
    size: Number(info.size),
    modified: new Date(Number(info.modifiedMs)),
    changed: new Date(Number(info.changedMs)),
    mode: info.mode,
    uid: info.uid,
    gid: info.gid,
    linkTarget: info.linkTarget === "" ? null : info.linkTarget,
    problem: info.problem === "" ? null : info.problem,
  };
};

const flag = z.boolean("is neither true nor false").default(false);
const size = int64(0, Number.MAX_SAFE_INTEGER);

const schemas = {
  read: z.strictObject({
    ...callFields,
    format: z.enum(["text", "bytes", "stream"]).default("text"),
    offset: size.default(0n),
    length: size.optional(),
  }),
  write: z.strictObject({
    ...callFields,
    ifMatch: z.string().default(""),
    ifNoneMatch: flag,
    append: flag,
    mode: fileMode.optional(),
    createParents: flag,
  }),
  stat: z.strictObject({ ...callFields, follow: z.boolean().default(true), digest: flag }),
  list: z.strictObject({
    ...callFields,
    cursor: z.string().default(""),
    limit: int64(1, LIMITS.listEntries.max).optional(),
  }),
  call: z.strictObject(callFields),
  makeDir: z.strictObject({ ...callFields, parents: flag, mode: fileMode.optional() }),
  move: z.strictObject({ ...callFields, overwrite: flag }),
  remove: z.strictObject({ ...callFields, recursive: flag, missingOk: flag }),
};

const concat = async (parts: AsyncIterable<Uint8Array>): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  for await (const part of parts) chunks.push(part);
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
};

export const createFiles = (call: MachineCall): Files => {
  async function* ranges(
    name: string,
    { offset, length, signal, timeoutMs }: z.output<typeof schemas.read>,
  ): AsyncGenerator<Uint8Array> {
    const end = length === undefined ? undefined : offset + length;
    for (let at = offset; end === undefined || at < end;) {
      const rest = end === undefined ? undefined : end - at;
      const { data, eof } = await call(
        { $case: "fsRead", value: { path: name, offset: at, length: rest } },
        { signal, timeoutMs },
      );
      if (data.length > 0) yield data;
      if (eof || data.length === 0) return;
      at += BigInt(data.length);
    }
  }

  function read(given: string, options?: ReadOptions & { format?: "text" | undefined }): Promise<string>;
  function read(given: string, options: ReadOptions & { format: "bytes" }): Promise<Uint8Array>;
  function read(
    given: string,
    options: ReadOptions & { format: "stream" },
  ): Promise<AsyncIterable<Uint8Array>>;
  async function read(
    given: string,
    options: ReadOptions & { format?: "text" | "bytes" | "stream" | undefined } = {},
  ): Promise<string | Uint8Array | AsyncIterable<Uint8Array>> {
    const name = readOptions(path, given);
    const fields = readOptions(schemas.read, options);
    const parts = ranges(name, fields);
    if (fields.format === "stream") return parts;
    const whole = await concat(parts);
    return fields.format === "bytes" ? whole : new TextDecoder().decode(whole);
  }

  function write(
    given: string,
    data: string | Uint8Array,
    options?: WriteOptions & { append?: false | undefined },
  ): Promise<Written & { sha256: string }>;
  function write(given: string, data: string | Uint8Array, options?: WriteOptions): Promise<Written>;
  async function write(
    given: string,
    data: string | Uint8Array,
    options: WriteOptions = {},
  ): Promise<Written> {
    const { ifMatch, ifNoneMatch, append, mode, createParents, ...rest } = readOptions(
      schemas.write,
      options,
    );
    const value = {
      path: readOptions(path, given),
      data: readOptions(bytes, data),
      ifMatch,
      ifNoneMatch,
      append,
      mode,
      createParents,
    };
    const written = await call({ $case: "fsWrite", value }, rest);
    return {
      path: written.path,
      size: Number(written.size),
      sha256: written.sha256 === "" ? null : written.sha256,
      created: written.created,
    };
  }

  const list: Files["list"] = async (given, options = {}) => {
    const { cursor, limit, ...rest } = readOptions(schemas.list, options);
    const page = await call(
      { $case: "fsList", value: { path: readOptions(path, given), cursor, limit } },
      rest,
    );
    return { path: page.path, entries: page.entries.map(toInfo), next: page.next === "" ? null : page.next };
  };

  return {
    read,
    write,
    async stat(given, options = {}) {
      const { follow, digest, ...rest } = readOptions(schemas.stat, options);
      const { info, sha256 } = await call(
        { $case: "fsStat", value: { path: readOptions(path, given), noFollow: !follow, digest } },
        rest,
      );
      return { ...toInfo(info), sha256: sha256 === "" ? null : sha256 };
    },
    async exists(given, options = {}) {
      const rest = readOptions(schemas.call, options);
      try {
        await call(
          { $case: "fsStat", value: { path: readOptions(path, given), noFollow: true, digest: false } },
          rest,
        );
        return true;
      } catch (error) {
        // Only a machine that answered can say that a path is not there.
        if (error instanceof FarhandError && error.code === "not_found") return false;
        throw error;
      }
    },
    list,
    async *entries(given, options = {}) {
      for (let cursor: string | null = ""; cursor !== null;) {
        const page: Page = await list(given, { ...options, ...(cursor === "" ? {} : { cursor }) });
        yield* page.entries;
        cursor = page.next;
      }
    },
    async makeDir(given, options = {}) {
      const { parents, mode, ...rest } = readOptions(schemas.makeDir, options);
      const made = await call(
        { $case: "fsMkdir", value: { path: readOptions(path, given), parents, mode } },
        rest,
      );
      return { path: made.path, created: made.created };
    },
    async move(from, to, options = {}) {
      const { overwrite, ...rest } = readOptions(schemas.move, options);
      const moved = await call(
        { $case: "fsMove", value: { from: readOptions(path, from), to: readOptions(path, to), overwrite } },
        rest,
      );
      return { path: moved.path };
    },
    async remove(given, options = {}) {
      const { recursive, missingOk, ...rest } = readOptions(schemas.remove, options);
      const { removed } = await call(
        { $case: "fsRemove", value: { path: readOptions(path, given), recursive, missingOk } },
        rest,
      );
      return { removed };
    },
    async chmod(given, mode, options = {}) {
      const rest = readOptions(schemas.call, options);
      const { info } = await call(
        { $case: "fsChmod", value: { path: readOptions(path, given), mode: readOptions(fileMode, mode) } },
        rest,
      );
      return toInfo(info);
    },
  };
};
