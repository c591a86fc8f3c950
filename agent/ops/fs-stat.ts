import * as z from "zod";
import { toFileInfo } from "./file-info.js";
import { type Op, path, readArgs } from "./op.js";

const schema = z
  .object({ path, noFollow: z.boolean(), digest: z.boolean() })
  .refine(
    ({ noFollow, digest }) => !(noFollow && digest),
    "a digest is of what a link points to: noFollow and digest exclude each other",
  );

export const fsStat: Op<"fsStat"> = {
  mutates: false,
  run: async (args, _call, { files }) => {
    const { path, noFollow, digest } = readArgs(schema, args);
    const { info, sha256 } = await files.stat(path, { follow: !noFollow, digest });
    return { info: toFileInfo(info), sha256 };
  },
};
