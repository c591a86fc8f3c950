import { NO_RESPONDER_RETRIES_MS } from "../proto/limits.js";
import type { Silence } from "./rpc.js";

/** What is known of a request that has had no answer yet. */
export interface Attempt {
  /** How often in a row the bus said that nobody listens. */
  readonly noResponders: number;
  /** A copy was handed to the bus and never accounted for. */
  readonly mayHaveRun: boolean;
  /** For how long our own link, and then the machine's, has been waited for since a copy was sent. */
  readonly awayMs: number;
}

export const FIRST_ATTEMPT: Attempt = { noResponders: 0, mayHaveRun: false, awayMs: 0 };

export type Verdict =
  | { readonly do: "retry"; readonly afterMs: number; readonly attempt: Attempt }
  /** Offline or reconnecting: when the machine was last heard of decides. */
  | { readonly do: "ask_presence" }
  | {
      readonly do: "fail";
      readonly code: "agent_reconnecting" | "control_unavailable";
      readonly ran: "no" | "maybe";
    };

const AWAY_RETRY_MS = 100;
/**
 * A restart of the bus takes a second or two, and the machine may be back later than we are; a
 * request that was under way waits for both this long.
 */
const AWAY_PATIENCE_MS = 10_000;

/** A copy is out there somewhere: only the agent's journal can tell what became of it. */
const waitOn = (attempt: Attempt, code: "agent_reconnecting" | "control_unavailable"): Verdict => {
  const awayMs = attempt.awayMs + AWAY_RETRY_MS;
  if (awayMs > AWAY_PATIENCE_MS) return { do: "fail", code, ran: "maybe" };
  return { do: "retry", afterMs: AWAY_RETRY_MS, attempt: { ...attempt, awayMs } };
};

/**
 * What to do about an exchange without an answer. The same request is sent again only where the
 * agent will recognise it, or where it cannot have arrived.
 */
export const afterSilence = (attempt: Attempt, outcome: Silence): Verdict => {
  switch (outcome.kind) {
    case "no_responders": {
      // Before our link dropped somebody listened: it was not answered with "no responders" then.
      if (attempt.mayHaveRun) return waitOn(attempt, "agent_reconnecting");
      const afterMs = NO_RESPONDER_RETRIES_MS[attempt.noResponders];
      if (afterMs === undefined) return { do: "ask_presence" };
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
        afterMs: AWAY_RETRY_MS,
        attempt: { noResponders: 0, mayHaveRun: true, awayMs: 0 },
      };
    case "unavailable":
      if (attempt.mayHaveRun) return waitOn(attempt, "control_unavailable");
      return { do: "fail", code: "control_unavailable", ran: "no" };
  }
};
