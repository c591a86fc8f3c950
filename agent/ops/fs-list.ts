import * as z from "zod";
import { FileInfo } from "../../proto/gen/files.js";
import { LIMITS } from "../../proto/limits.js";
import { toFileInfo } from "./file-info.js";
import { count, type Op, path, readArgs, text } from "./op.js";

const schema = z.object({ path, cursor: text, limit: count(1, LIMITS.listEntries.max).optional() });

/** Tag and length of an entry within the list. */
const FRAME_BYTES = 8;

/** As many entries as fit one reply, at least one. */
const fitting = (entries: FileInfo[], maxBytes: number): FileInfo[] => {
  let bytes = 0;
  const end = entries.findIndex((entry, at) => {
    bytes += FileInfo.encode(entry).finish().length + FRAME_BYTES;
    return at > 0 && bytes > maxBytes;
  });
  return end < 0 ? entries : entries.slice(0, end);
};

export const fsList: Op<"fsList"> = {
  mutates: false,
  run: async (args, call, { files }) => {
    const { path, cursor, limit } = readArgs(schema, args);
    const page = await files.list({ path, cursor, limit: limit ?? LIMITS.listEntries.default });
    const all = page.entries.map(toFileInfo);
    const entries = fitting(all, call.maxReplyBytes);
    const isCut = page.more || entries.length < all.length;
    return { path: files.at(path), entries, next: isCut ? (entries.at(-1)?.name ?? "") : "" };
  },
};
