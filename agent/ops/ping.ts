import type { Op } from "./op.js";

export const ping: Op<"ping"> = { mutates: false, scatter: true, anonymous: true, run: async () => ({}) };
