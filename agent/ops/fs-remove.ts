import * as z from "zod";
import { type Op, path, readArgs } from "./op.js";

const schema = z.object({ path, recursive: z.boolean(), missingOk: z.boolean() });

export const fsRemove: Op<"fsRemove"> = {
  mutates: true,
  run: async (args, _call, { files }) => {
    const { path, recursive, missingOk } = readArgs(schema, args);
    return { removed: await files.remove(path, { recursive, missingOk }) };
  },
};
