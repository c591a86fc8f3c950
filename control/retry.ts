import { NO_RESPONDER_RETRIES_MS } from "../proto/limits.js";
import type { Outcome } from "./rpc.js";

/** What is known of a request that has had no answer yet. */
export interface Attempt {
  /** How often in a row the bus said that nobody listens. */
  readonly noResponders: number;
  /** A copy was handed to the bus and never accounted for. */
  readonly mayHaveRun: boolean;
  /** For how long our own link has been away since a copy was sent. */
  readonly linkAwayMs: number;
}

export const FIRST_ATTEMPT: Attempt = { noResponders: 0, mayHaveRun: false, linkAwayMs: 0 };

export type Verdict =
  | { readonly do: "retry"; readonly afterMs: number; readonly attempt: Attempt }
  /** Offline or reconnecting: when the machine was last heard of decides. */
  | { readonly do: "ask_presence"; readonly ran: "no" | "maybe" }
  | {
      readonly do: "fail";
      readonly code: "agent_reconnecting" | "control_unavailable";
      readonly ran: "no" | "maybe";
    };

const LINK_RETRY_MS = 100;
/** A restart of the bus takes a second or two; a request that was under way waits for it this long. */
const LINK_PATIENCE_MS = 10_000;

/**
 * What to do about an exchange without an answer. The same request is sent again only where the
 * agent will recognise it, or where it cannot have arrived.
 */
export const afterSilence = (
  attempt: Attempt,
  outcome: Exclude<Outcome, { kind: "reply" | "too_large" }>,
): Verdict => {
  const ran = attempt.mayHaveRun ? "maybe" : "no";
  switch (outcome.kind) {
    case "no_responders": {
      const afterMs = NO_RESPONDER_RETRIES_MS[attempt.noResponders];
      if (afterMs === undefined) return { do: "ask_presence", ran };
      return { do: "retry", afterMs, attempt: { ...attempt, noResponders: attempt.noResponders + 1 } };
    }
    case "timeout":
      return {
        do: "fail",
        code: outcome.linkIsUp ? "agent_reconnecting" : "control_unavailable",
        ran: "maybe",
      };
    case "link_lost":
      return {
        do: "retry",
        afterMs: LINK_RETRY_MS,
        attempt: { noResponders: 0, mayHaveRun: true, linkAwayMs: 0 },
      };
    case "unavailable": {
      const isWaiting = attempt.mayHaveRun && attempt.linkAwayMs < LINK_PATIENCE_MS;
      if (!isWaiting) return { do: "fail", code: "control_unavailable", ran };
      return {
        do: "retry",
        afterMs: LINK_RETRY_MS,
        attempt: { ...attempt, linkAwayMs: attempt.linkAwayMs + LINK_RETRY_MS },
      };
    }
  }
};
