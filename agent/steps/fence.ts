import type { Step } from "../call.js";
import type { Epochs } from "../store/epochs.js";

/**
 * Refuses a call made under a lease that has moved on, so that a request still in flight during a
 * hand-over cannot act for the previous holder.
 */
export const fence =
  (epochs: Epochs): Step =>
  (next) =>
  async (call) => {
    epochs.admit(call);
    return next(call);
  };
