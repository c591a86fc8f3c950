import type { Step } from "../call.js";
import type { Running } from "../running.js";

/** Gives a call that changes something a signal by which it can be ended early. */
export const cancellable =
  (running: Running): Step =>
  (next) =>
  async (call) => {
    if (!call.mutates) return next(call);
    try {
      return await next({ ...call, signal: running.enter(call.caller, call.requestId) });
    } finally {
      running.leave(call.caller, call.requestId);
    }
  };
