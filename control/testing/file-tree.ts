import { posix } from "node:path";
import type { Errno, Fault } from "./file-faults.js";

interface Times {
  mode: number;
  modifiedMs: number;
  changedMs: number;
}

export interface FileNode extends Times {
  readonly kind: "file";
  data: Uint8Array;
}

export interface DirectoryNode extends Times {
  readonly kind: "directory";
  readonly children: Map<string, TreeNode>;
}

export type TreeNode = FileNode | DirectoryNode;

const NAME_BYTES = 255;
const UMASK = 0o022;

export const masked = (mode: number): number => mode & ~UMASK;

export const newDirectory = (mode: number, nowMs: number): DirectoryNode => ({
  kind: "directory",
  children: new Map(),
  mode,
  modifiedMs: nowMs,
  changedMs: nowMs,
});

export const touch = (node: TreeNode, nowMs: number): void => {
  node.modifiedMs = nowMs;
  node.changedMs = nowMs;
};

const namesOf = (path: string): string[] => path.split("/").filter((name) => name !== "");

/** What is at an absolute path, or why nothing is. */
const walk = (root: DirectoryNode, path: string): TreeNode | Errno => {
  let node: TreeNode = root;
  for (const name of namesOf(path)) {
    if (node.kind !== "directory") return "ENOTDIR";
    if (Buffer.byteLength(name) > NAME_BYTES) return "ENAMETOOLONG";
    const child = node.children.get(name);
    if (child === undefined) return "ENOENT";
    node = child;
  }
  return node;
};

export const exists = (root: DirectoryNode, path: string): boolean => typeof walk(root, path) !== "string";

export const lookUp = (root: DirectoryNode, path: string, fault: Fault): TreeNode => {
  const found = walk(root, path);
  if (typeof found === "string") throw fault(found);
  return found;
};

/** Undefined where there is nothing, but could be. */
export const find = (root: DirectoryNode, path: string, fault: Fault): TreeNode | undefined =>
  walk(root, path) === "ENOENT" ? undefined : lookUp(root, path, fault);

/** The directory that holds a path, whether or not the path exists. */
export const parentOf = (root: DirectoryNode, path: string, fault: Fault): DirectoryNode => {
  const parent = lookUp(root, posix.dirname(path), fault);
  if (parent.kind !== "directory") throw fault("ENOTDIR");
  return parent;
};

const DEFAULT_MODE = masked(0o777);

/** Makes a directory and the missing ones above it; true if one of them was missing. */
export const makeDirectories = (
  root: DirectoryNode,
  path: string,
  { mode = DEFAULT_MODE, nowMs, fault }: { mode?: number | undefined; nowMs: number; fault: Fault },
): boolean => {
  let node = root;
  let made = false;
  const names = namesOf(path);
  for (const [at, name] of names.entries()) {
    if (Buffer.byteLength(name) > NAME_BYTES) throw fault("ENAMETOOLONG");
    const child = node.children.get(name);
    const isLast = at === names.length - 1;
    if (child?.kind === "file") throw fault(isLast ? "EEXIST" : "ENOTDIR");
    const directory = child ?? newDirectory(isLast ? mode : DEFAULT_MODE, nowMs);
    if (child === undefined) {
      node.children.set(name, directory);
      touch(node, nowMs);
      made = true;
    }
    node = directory;
  }
  return made;
};

/** Every file below a directory, by its path. */
export function* filesBelow(directory: DirectoryNode, path: string): Generator<[string, FileNode]> {
  for (const [name, child] of directory.children) {
    const below = posix.join(path, name);
    if (child.kind === "file") yield [below, child];
    else yield* filesBelow(child, below);
  }
}
