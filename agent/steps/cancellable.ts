import type { Step } from "../call.js";
import { callKey, type Running } from "../running.js";

/** Gives a call that changes something a signal by which it can be ended early. */
export const cancellable =
  (running: Running): Step =>
  (next) =>
  async (call) => {
    if (!call.mutates) return next(call);
    const key = callKey(call.caller.name, call.requestId);
    try {
      return await next({ ...call, signal: running.enter(key) });
    } finally {
      running.leave(key);
    }
  };
