import { posix } from "node:path";
import * as z from "zod";
import { type FileInfo, FileInfo as FileInfoMessage, FileKind } from "../../proto/gen/files.js";
import { LIMITS } from "../../proto/limits.js";
import type { RequestOp, ResponseResult } from "../envelope.js";
import { fileMode, readOptions } from "../options.js";
import { type Found, sha256Of, type VirtualFiles } from "./virtual-files.js";

/** The user whom all files belong to. */
const USER_ID = 1000;
const DIRECTORY_BYTES = 4096n;

const wirePath = z
  .string()
  .min(1, "is empty")
  .refine((text) => !text.includes("\0"), "holds a NUL character")
  .refine((text) => Buffer.byteLength(text) <= LIMITS.pathBytes, `is longer than ${LIMITS.pathBytes} bytes`);

const schemas = {
  path: z.object({ path: wirePath }),
  stat: z
    .object({ path: wirePath, noFollow: z.boolean(), digest: z.boolean() })
    .refine(
      ({ noFollow, digest }) => !(noFollow && digest),
      "a digest is of what a link points to: noFollow and digest exclude each other",
    ),
  write: z
    .object({
      path: wirePath,
      ifMatch: z.string().regex(/^([0-9a-fA-F]{64})?$/, "is not a SHA-256 in hexadecimal"),
      ifNoneMatch: z.boolean(),
      mode: fileMode.optional(),
    })
    .refine(
      ({ ifMatch, ifNoneMatch }) => !(ifMatch !== "" && ifNoneMatch),
      "ifMatch and ifNoneMatch exclude each other",
    ),
  move: z.object({ from: wirePath, to: wirePath }),
};

const toInfo = ({ path, node }: Found): FileInfo => ({
  path,
  name: posix.basename(path),
  kind: node.kind === "file" ? FileKind.FILE : FileKind.DIRECTORY,
  size: node.kind === "file" ? BigInt(node.data.length) : DIRECTORY_BYTES,
  modifiedMs: BigInt(Math.round(node.modifiedMs)),
  changedMs: BigInt(Math.round(node.changedMs)),
  mode: node.mode,
  uid: USER_ID,
  gid: USER_ID,
  linkTarget: "",
  problem: "",
});

/** Tag and length of an entry within the list. */
const FRAME_BYTES = 8;

/** As many entries as fit one reply, at least one. */
const fitting = (entries: FileInfo[], maxBytes: number): FileInfo[] => {
  let bytes = 0;
  const end = entries.findIndex((entry, at) => {
    bytes += FileInfoMessage.encode(entry).finish().length + FRAME_BYTES;
    return at > 0 && bytes > maxBytes;
  });
  return end < 0 ? entries : entries.slice(0, end);
};

/** Does what a request asks of the files; undefined if it asks for something else. */
export const actOnFiles = (
  op: RequestOp,
  files: VirtualFiles,
  maxReplyBytes: number,
): ResponseResult | undefined => {
  switch (op.$case) {
    case "fsStat": {
      readOptions(schemas.stat, op.value);
      const sha256 = op.value.digest ? sha256Of(files.file(op.value.path).data) : "";
      return { $case: "fsStat", value: { info: toInfo(files.stat(op.value.path)), sha256 } };
    }
    case "fsRead":
      readOptions(schemas.path, op.value);
      return { $case: "fsRead", value: files.read(op.value, maxReplyBytes) };
    case "fsWrite":
      readOptions(schemas.write, op.value);
      return { $case: "fsWrite", value: files.write(op.value) };
    case "fsList": {
      readOptions(schemas.path, op.value);
      const page = files.list(op.value);
      const all = page.entries.map(toInfo);
      const entries = fitting(all, maxReplyBytes);
      const isCut = page.more || entries.length < all.length;
      const next = isCut ? (entries.at(-1)?.name ?? "") : "";
      return { $case: "fsList", value: { path: files.at(op.value.path), entries, next } };
    }
    case "fsMkdir": {
      readOptions(schemas.path, op.value);
      const created = files.makeDirectory(op.value);
      return { $case: "fsMkdir", value: { path: files.at(op.value.path), created } };
    }
    case "fsMove":
      readOptions(schemas.move, op.value);
      files.move(op.value);
      return { $case: "fsMove", value: { path: files.at(op.value.to) } };
    case "fsRemove":
      readOptions(schemas.path, op.value);
      return { $case: "fsRemove", value: { removed: files.remove(op.value) } };
    case "fsChmod":
      readOptions(schemas.path, op.value);
      return {
        $case: "fsChmod",
        value: { info: toInfo(files.changeMode(op.value.path, op.value.mode)) },
      };
    default:
      return undefined;
  }
};
