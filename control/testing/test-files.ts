import * as z from "zod";
import { bytes, fileMode, path, readOptions } from "../options.js";
import { filesBelow, find } from "./file-tree.js";
import { faultAt } from "./file-faults.js";
import type { VirtualFiles } from "./virtual-files.js";

/** A machine's files, as a test sets them up and looks at them: at once, without a request. */
export interface TestFiles {
  /** Puts a file there, with the directories above it. */
  set(path: string, data: string | Uint8Array, options?: { mode?: number | undefined }): void;
  /** A file as text; undefined where there is none. */
  get(path: string): string | undefined;
  getBytes(path: string): Uint8Array | undefined;
  /** Makes a directory, with those above it. */
  makeDir(path: string): void;
  /** Takes away a file, or a directory with all it holds. */
  remove(path: string): void;
  /** The paths of all files, in order. */
  paths(): string[];
}

const setOptions = z.strictObject({ mode: fileMode.optional() });

export const createTestFiles = (files: VirtualFiles): TestFiles => {
  const getBytes = (given: string): Uint8Array | undefined => {
    const at = files.at(readOptions(path, given));
    const node = find(files.tree, at, faultAt(at));
    return node?.kind === "file" ? new Uint8Array(node.data) : undefined;
  };
  return {
    set(given, data, options = {}) {
      const { mode } = readOptions(setOptions, options);
      files.write({
        path: readOptions(path, given),
        data: readOptions(bytes, data),
        ifMatch: "",
        ifNoneMatch: false,
        append: false,
        mode,
        createParents: true,
      });
      if (mode !== undefined) files.changeMode(given, mode);
    },
    get(given) {
      const data = getBytes(given);
      return data === undefined ? undefined : new TextDecoder().decode(data);
    },
    getBytes,
    makeDir: (given) =>
      void files.makeDirectory({ path: readOptions(path, given), parents: true, mode: undefined }),
    remove: (given) =>
      void files.remove({ path: readOptions(path, given), recursive: true, missingOk: true }),
    paths: () => [...filesBelow(files.tree, "/")].map(([at]) => at).toSorted(),
  };
};
