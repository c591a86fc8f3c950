import { makeDirectory, movePath, removePath, changeMode } from "./change.js";
import { listDirectory } from "./list.js";
import { absolutePath } from "./paths.js";
import { readRange, statPath, type ReadRange } from "./read.js";
import { type WriteRequest, type Written, writeFile, writeTarget } from "./write.js";

/** The machine's files, as ops may touch them. Every path passes through `at`. */
export interface Files {
  readonly root: string;
  at(path: string): string;
  stat(path: string, options: { follow: boolean; digest: boolean }): ReturnType<typeof statPath>;
  read(path: string, range: ReadRange): ReturnType<typeof readRange>;
  write(request: WriteRequest): Promise<Written>;
  list(request: { path: string; cursor: string; limit: number }): ReturnType<typeof listDirectory>;
  makeDirectory(path: string, options: { parents: boolean; mode: number | undefined }): Promise<boolean>;
  move(from: string, to: string, options: { overwrite: boolean }): Promise<void>;
  remove(path: string, options: { recursive: boolean; missingOk: boolean }): Promise<boolean>;
  changeMode(path: string, mode: number): ReturnType<typeof changeMode>;
}

/** Runs one task at a time per key, so that a check and the change that depends on it stay together. */
const oneAtATime = () => {
  const last = new Map<string, Promise<unknown>>();
  return async <T>(key: string, task: () => Promise<T>): Promise<T> => {
    const before = last.get(key) ?? Promise.resolve();
    const mine = before.then(task, task);
    last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (last.get(key) === mine) last.delete(key);
    }
  };
};

export const createFiles = ({ root }: { root: string }): Files => {
  const at = (path: string): string => absolutePath(root, path);
  const serially = oneAtATime();
  return {
    root,
    at,
    stat: (path, options) => statPath(at(path), options),
    read: (path, range) => readRange(at(path), range),
    async write(asked) {
      const request = { ...asked, path: at(asked.path) };
      const target = await writeTarget(request);
      return serially(target, () => writeFile(request, target));
    },
    list: (request) => listDirectory({ ...request, path: at(request.path) }),
    makeDirectory: (path, options) => makeDirectory(at(path), options),
    move: (from, to, options) => movePath(at(from), at(to), options),
    remove: (path, options) => removePath(at(path), options),
    changeMode: (path, mode) => changeMode(at(path), mode),
  };
};
