import { type FileInfo, FileKind } from "../../proto/gen/files.js";
import type { Info } from "../host/files/file-info.js";
import type { Entry } from "../host/files/list.js";

const KINDS: Readonly<Record<Info["kind"], FileKind>> = {
  other: FileKind.OTHER,
  file: FileKind.FILE,
  directory: FileKind.DIRECTORY,
  symlink: FileKind.SYMLINK,
  fifo: FileKind.FIFO,
  socket: FileKind.SOCKET,
  device: FileKind.DEVICE,
};

export const toFileInfo = (entry: Entry): FileInfo => {
  if ("kind" in entry) return { ...entry, kind: KINDS[entry.kind], problem: "" };
  return {
    ...entry,
    kind: FileKind.OTHER,
    size: 0n,
    modifiedMs: 0n,
    changedMs: 0n,
    mode: 0,
    uid: 0,
    gid: 0,
    linkTarget: "",
  };
};
