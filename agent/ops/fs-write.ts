import * as z from "zod";
import { mode, type Op, path, readArgs } from "./op.js";

const schema = z
  .object({
    path,
    data: z.instanceof(Uint8Array),
    ifMatch: z.string().regex(/^([0-9a-fA-F]{64})?$/, "is not a SHA-256 in hexadecimal"),
    ifNoneMatch: z.boolean(),
    append: z.boolean(),
    mode: mode.optional(),
    createParents: z.boolean(),
  })
  .refine(
    ({ ifMatch, ifNoneMatch }) => !(ifMatch !== "" && ifNoneMatch),
    "ifMatch and ifNoneMatch exclude each other",
  );

export const fsWrite: Op<"fsWrite"> = {
  mutates: true,
  run: async (args, _call, { files }) => {
    const request = readArgs(schema, args);
    return files.write({ ...request, mode: request.mode });
  },
};
