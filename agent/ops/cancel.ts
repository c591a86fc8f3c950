import type { Op } from "./op.js";

export const cancel: Op<"cancel"> = {
  mutates: false,
  run: async ({ requestId }, call, host) => ({ found: host.cancel(call.caller, requestId) }),
};
