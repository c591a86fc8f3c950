import { FarhandError } from "../../proto/farhand-error.js";
import type { Step } from "../call.js";

/** Holds the number of calls at once, so that a flood ends in `busy` and not in a dead agent. */
export const admit = (limit: number): Step => {
  let running = 0;
  return (next) => async (call) => {
    if (running >= limit) {
      throw new FarhandError("busy", `${running} requests run already, and ${limit} is the limit`, {
        detail: { running: String(running), limit: String(limit) },
      });
    }
    running++;
    try {
      return await next(call);
    } finally {
      running--;
    }
  };
};
