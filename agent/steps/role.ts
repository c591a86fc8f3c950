import { FarhandError } from "../../proto/farhand-error.js";
import type { Step } from "../call.js";

/** A reader may look at everything and change nothing. */
export const role: Step = (next) => async (call) => {
  if (call.mutates && call.caller.role !== "operator") {
    throw new FarhandError(
      "denied",
      `${call.caller.name} has read-only credentials, and ${call.op.$case} changes the machine`,
      {
        detail: { rule: "role", role: call.caller.role },
        advice: "ask with credentials of an operator",
      },
    );
  }
  return next(call);
};
