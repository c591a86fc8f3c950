import { FarhandError } from "../../proto/farhand-error.js";
import { LIMITS } from "../../proto/limits.js";
import type { Call, Step } from "../call.js";

/** The furthest from 1970 that a Date can be; an int64 can be further. */
const LAST_MS = 8.64e15;

const iso = (ms: number): string =>
  Math.abs(ms) <= LAST_MS ? new Date(ms).toISOString() : `${ms} ms after 1970`;

/** Throws unless a request may still start at `nowMs`. */
export const checkDeadline = (
  { deadlineMs, issuedMs }: Pick<Call, "deadlineMs" | "issuedMs">,
  nowMs: number,
): void => {
  const detail = (): { machineTime: string } => ({ machineTime: iso(nowMs) });
  if (deadlineMs <= 0) throw new FarhandError("invalid", "the request has no deadline");
  if (issuedMs - nowMs > LIMITS.clockToleranceMs) {
    throw new FarhandError(
      "expired",
      `the request was issued at ${iso(issuedMs)}, which is in the future here (${iso(nowMs)}): the clocks differ`,
      {
        detail: detail(),
        advice: "set the clocks of both sides; a client that has seen one answer corrects for it by itself",
      },
    );
  }
  if (deadlineMs < nowMs) {
    throw new FarhandError(
      "expired",
      `the deadline ${iso(deadlineMs)} had passed when the request was about to start (${iso(nowMs)})`,
      { detail: detail() },
    );
  }
  if (deadlineMs - nowMs > LIMITS.deadlineAheadMs) {
    throw new FarhandError(
      "invalid",
      `the deadline ${iso(deadlineMs)} is more than ${LIMITS.deadlineAheadMs / 60_000} minutes ahead (${iso(nowMs)} here)`,
      { detail: detail() },
    );
  }
};

/**
 * Refuses a request that is past its deadline when it is about to start, such as one that waited
 * in a buffer while the machine slept. Deadlines are on the machine's clock; callers learn the
 * difference from earlier answers, never the agent from the message itself.
 */
export const deadline =
  (now: () => number): Step =>
  (next) =>
  async (call) => {
    checkDeadline(call, now());
    return next(call);
  };
