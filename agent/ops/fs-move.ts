import * as z from "zod";
import { type Op, path, readArgs } from "./op.js";

const schema = z.object({ from: path, to: path, overwrite: z.boolean() });

export const fsMove: Op<"fsMove"> = {
  mutates: true,
  run: async (args, _call, { files }) => {
    const { from, to, overwrite } = readArgs(schema, args);
    await files.move(from, to, { overwrite });
    return { path: files.at(to) };
  },
};
