import { FarhandError } from "../../proto/farhand-error.js";
import type { Step } from "../call.js";

export interface Gate {
  readonly step: Step;
  /** From now on new calls are refused; resolves when those inside have ended. */
  close(): Promise<void>;
}

/** Lets calls in until the agent shuts down, and knows when the last one has left. */
export const createGate = (): Gate => {
  let inside = 0;
  let isClosed = false;
  let empty: (() => void) | undefined;
  return {
    step: (next) => async (call) => {
      if (isClosed && call.mutates)
        throw new FarhandError("draining", "the agent is shutting down and takes no new work");
      inside++;
      try {
        return await next(call);
      } finally {
        if (--inside === 0) empty?.();
      }
    },
    close() {
      isClosed = true;
      return inside === 0 ? Promise.resolve() : new Promise((resolve) => (empty = resolve));
    },
  };
};
