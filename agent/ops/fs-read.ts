import * as z from "zod";
import { LIMITS } from "../../proto/limits.js";
import { type Op, path, readArgs } from "./op.js";

const schema = z.object({
  path,
  offset: z
    .bigint()
    .nonnegative("is negative")
    .max(BigInt(Number.MAX_SAFE_INTEGER), "is larger than any file"),
  length: z.bigint().nonnegative("is negative").optional(),
});

/** Answers with what fits: `eof` tells whether there is more to ask for. */
export const fsRead: Op<"fsRead"> = {
  mutates: false,
  run: async (args, call, { files }) => {
    const { path, offset, length } = readArgs(schema, args);
    const wanted = length === undefined ? LIMITS.readBytes.default : Number(length);
    const { data, eof, size } = await files.read(path, {
      offset,
      length: Math.min(wanted, call.maxReplyBytes),
    });
    return { data, eof, size };
  },
};
