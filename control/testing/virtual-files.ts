import { createHash } from "node:crypto";
import { posix } from "node:path";
import { FarhandError } from "../../proto/farhand-error.js";
import type { FsList, FsMkdir, FsMove, FsRead, FsRemove, FsWrite } from "../../proto/gen/files.js";
import { LIMITS } from "../../proto/limits.js";
import { type Errno, errnoFault, type Fault, faultAt, notAFile } from "./file-faults.js";
import {
  type DirectoryNode,
  exists,
  type FileNode,
  find,
  lookUp,
  makeDirectories,
  masked,
  newDirectory,
  parentOf,
  touch,
  type TreeNode,
} from "./file-tree.js";

export interface Found {
  readonly path: string;
  readonly node: TreeNode;
}

export interface WrittenFile {
  readonly path: string;
  readonly size: bigint;
  /** Empty for an append. */
  readonly sha256: string;
  readonly created: boolean;
}

/** A machine's files in memory: directories and regular files, for a user who may do everything. */
export interface VirtualFiles {
  readonly root: string;
  readonly tree: DirectoryNode;
  /** A path as a caller wrote it, made absolute. */
  at(path: string): string;
  stat(path: string): Found;
  file(path: string): FileNode;
  read(request: FsRead, maxBytes: number): { data: Uint8Array; eof: boolean; size: bigint };
  write(request: FsWrite): WrittenFile;
  list(request: FsList): { entries: Found[]; more: boolean };
  makeDirectory(request: FsMkdir): boolean;
  move(request: FsMove): void;
  remove(request: FsRemove): boolean;
  changeMode(path: string, mode: number): Found;
}

export const sha256Of = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");

const checkConditions = (request: FsWrite, path: string, existing: FileNode | undefined): void => {
  if (request.ifNoneMatch && existing !== undefined) throw errnoFault("EEXIST", path, { path });
  if (request.ifMatch === "") return;
  const present = existing === undefined ? "" : sha256Of(existing.data);
  if (present === request.ifMatch.toLowerCase()) return;
  const says = existing === undefined ? "does not exist" : "has changed";
  throw new FarhandError("conflict", `${path} ${says}: it is not what ifMatch names`, {
    detail: { path, ifMatch: request.ifMatch, present },
  });
};

/** What the target of a move is to blame for, where the source is in order. */
const BLAMES_TARGET: ReadonlySet<Errno> = new Set(["ENOENT", "ENOTDIR", "EISDIR", "ENOTEMPTY"]);

/** Throws unless `moved` may take the place of what is there. */
const checkReplaced = (moved: TreeNode, there: TreeNode, fault: Fault): void => {
  if (there.kind === "file") {
    if (moved.kind === "directory") throw fault("ENOTDIR");
  } else {
    if (moved.kind === "file") throw fault("EISDIR");
    if (there.children.size > 0) throw fault("ENOTEMPTY");
  }
};

export interface VirtualFilesOptions {
  /** Where relative paths and `~` start. */
  readonly root: string;
  readonly now: () => number;
}

export const createVirtualFiles = ({ root, now }: VirtualFilesOptions): VirtualFiles => {
  const tree = newDirectory(0o755, now());

  const at = (path: string): string =>
    path === "~" || path.startsWith("~/") ? posix.resolve(root, path.slice(2)) : posix.resolve(root, path);

  const file = (given: string): FileNode => {
    const path = at(given);
    const node = lookUp(tree, path, faultAt(path));
    if (node.kind !== "file") throw notAFile(path);
    return node;
  };

  const put = (request: FsWrite, path: string, existing: FileNode | undefined): WrittenFile => {
    const before = request.append && existing !== undefined ? existing.data : new Uint8Array();
    const data = new Uint8Array(Buffer.concat([before, request.data]));
    const mode = existing?.mode ?? request.mode ?? masked(0o666);
    const parent = parentOf(tree, path, faultAt(path));
    parent.children.set(posix.basename(path), {
      kind: "file",
      data,
      mode,
      modifiedMs: now(),
      changedMs: now(),
    });
    touch(parent, now());
    return {
      path,
      size: BigInt(data.length),
      sha256: request.append ? "" : sha256Of(data),
      created: existing === undefined,
    };
  };

  return {
    root,
    tree,
    at,
    file,
    stat(given) {
      const path = at(given);
      return { path, node: lookUp(tree, path, faultAt(path)) };
    },
    read(request, maxBytes) {
      const { data } = file(request.path);
      const start = Math.min(Number(request.offset), data.length);
      const wanted = request.length === undefined ? LIMITS.readBytes.default : Number(request.length);
      const end = Math.min(start + Math.min(wanted, maxBytes), data.length);
      return { data: data.slice(start, end), eof: end === data.length, size: BigInt(data.length) };
    },
    write(request) {
      const path = at(request.path);
      const fault = faultAt(path);
      if (request.createParents) makeDirectories(tree, posix.dirname(path), { nowMs: now(), fault });
      const existing = find(tree, path, fault);
      if (existing?.kind === "directory") throw notAFile(path);
      if (existing === undefined) parentOf(tree, path, fault);
      checkConditions(request, path, existing);
      return put(request, path, existing);
    },
    list({ path: given, cursor, limit = BigInt(LIMITS.listEntries.default) }) {
      const path = at(given);
      const node = lookUp(tree, path, faultAt(path));
      if (node.kind !== "directory") throw faultAt(path)("ENOTDIR");
      const after = [...node.children]
        .filter(([name]) => cursor === "" || name > cursor)
        .toSorted(([a], [b]) => (a < b ? -1 : 1));
      const entries = after
        .slice(0, Number(limit))
        .map(([name, child]) => ({ path: posix.join(path, name), node: child }));
      return { entries, more: entries.length < after.length };
    },
    makeDirectory({ path: given, parents, mode }) {
      const path = at(given);
      const fault = faultAt(path);
      const options = { mode, nowMs: now(), fault };
      if (parents) return makeDirectories(tree, path, options);
      if (path === "/" || parentOf(tree, path, fault).children.has(posix.basename(path)))
        throw fault("EEXIST");
      return makeDirectories(tree, path, options);
    },
    move({ from: givenFrom, to: givenTo, overwrite }) {
      const [from, to] = [at(givenFrom), at(givenTo)];
      const fault = (errno: Errno): FarhandError => {
        const isTarget = BLAMES_TARGET.has(errno) && exists(tree, from);
        return errnoFault(errno, isTarget ? to : from, { from, to });
      };
      if (!overwrite && find(tree, to, fault) !== undefined) throw errnoFault("EEXIST", to, { path: to });
      if (from === "/" || to === "/") throw fault("EBUSY");
      const source = parentOf(tree, from, fault);
      const target = parentOf(tree, to, fault);
      const moved = lookUp(tree, from, fault);
      if (to.startsWith(`${from}/`)) throw fault("EINVAL");
      if (to === from) return;
      const there = find(tree, to, fault);
      if (there !== undefined) checkReplaced(moved, there, fault);
      source.children.delete(posix.basename(from));
      target.children.set(posix.basename(to), moved);
      for (const directory of [source, target]) touch(directory, now());
    },
    remove({ path: given, recursive, missingOk }) {
      const path = at(given);
      const fault = faultAt(path);
      const node = find(tree, path, fault);
      if (node === undefined) {
        if (missingOk) return false;
        throw fault("ENOENT");
      }
      if (path === "/") throw fault("EBUSY");
      if (node.kind === "directory" && node.children.size > 0 && !recursive) throw fault("ENOTEMPTY");
      const parent = parentOf(tree, path, fault);
      parent.children.delete(posix.basename(path));
      touch(parent, now());
      return true;
    },
    changeMode(given, mode) {
      const path = at(given);
      const node = lookUp(tree, path, faultAt(path));
      node.mode = mode;
      node.changedMs = now();
      return { path, node };
    },
  };
};
