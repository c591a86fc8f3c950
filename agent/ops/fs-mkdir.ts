import * as z from "zod";
import { mode, type Op, path, readArgs } from "./op.js";

const schema = z.object({ path, parents: z.boolean(), mode: mode.optional() });

export const fsMkdir: Op<"fsMkdir"> = {
  mutates: true,
  run: async (args, _call, { files }) => {
    const { path, parents, mode } = readArgs(schema, args);
    return { path: files.at(path), created: await files.makeDirectory(path, { parents, mode }) };
  },
};
