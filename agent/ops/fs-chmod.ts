import * as z from "zod";
import { toFileInfo } from "./file-info.js";
import { mode, type Op, path, readArgs } from "./op.js";

const schema = z.object({ path, mode });

export const fsChmod: Op<"fsChmod"> = {
  mutates: true,
  run: async (args, _call, { files }) => {
    const { path, mode } = readArgs(schema, args);
    return { info: toFileInfo(await files.changeMode(path, mode)) };
  },
};
