import { describe, expect, test } from "vitest";
import { afterSilence, type Attempt, FIRST_ATTEMPT } from "../../control/retry.js";
import { NO_RESPONDER_RETRIES_MS } from "../../proto/limits.js";

const attempt = (fields: Partial<Attempt>): Attempt => ({ ...FIRST_ATTEMPT, ...fields });
const SENT = attempt({ mayHaveRun: true });
const NOBODY = { kind: "no_responders" } as const;
const LOST = { kind: "link_lost" } as const;
const DOWN = { kind: "unavailable", because: "refused" } as const;

describe("when nobody listens", () => {
  test("it is sent again after 25, 100 and 400 ms, and then the presence decides", () => {
    const delays: number[] = [];
    let now = FIRST_ATTEMPT;
    let verdict = afterSilence(now, NOBODY);
    for (; verdict.do === "retry"; verdict = afterSilence(now, NOBODY)) {
      delays.push(verdict.afterMs);
      now = verdict.attempt;
    }
    expect(delays).toEqual([25, 100, 400]);
    expect(delays).toEqual([...NO_RESPONDER_RETRIES_MS]);
    expect(verdict).toEqual({ do: "ask_presence" });
  });

  test("after our own link was lost the machine is waited for ten seconds, and then it may have run", () => {
    let now: Attempt = SENT;
    let waitedMs = 0;
    let verdict = afterSilence(now, NOBODY);
    for (; verdict.do === "retry"; verdict = afterSilence(now, NOBODY)) {
      waitedMs += verdict.afterMs;
      now = verdict.attempt;
    }
    expect(waitedMs).toBe(10_000);
    expect(verdict).toEqual({ do: "fail", code: "agent_reconnecting", ran: "maybe" });
  });
});

describe("when no answer comes in time", () => {
  test.each([FIRST_ATTEMPT, SENT, attempt({ noResponders: 2 })])(
    "the machine is reconnecting and it may have run: %o",
    (now) => {
      expect(afterSilence(now, { kind: "timeout", linkIsUp: true })).toEqual({
        do: "fail",
        code: "agent_reconnecting",
        ran: "maybe",
      });
    },
  );

  test("and our own link is down, the machine is not blamed", () => {
    expect(afterSilence(FIRST_ATTEMPT, { kind: "timeout", linkIsUp: false })).toEqual({
      do: "fail",
      code: "control_unavailable",
      ran: "maybe",
    });
  });
});

describe("when our link is lost under way", () => {
  test("the same request is sent again, as one that may have run, with all its tries ahead", () => {
    expect(afterSilence(attempt({ noResponders: 3, awayMs: 700 }), LOST)).toEqual({
      do: "retry",
      afterMs: 100,
      attempt: { noResponders: 0, mayHaveRun: true, awayMs: 0 },
    });
  });

  test("it waits ten seconds for the link to come back, and says then that it may have run", () => {
    let now: Attempt = SENT;
    let waitedMs = 0;
    let verdict = afterSilence(now, DOWN);
    for (; verdict.do === "retry"; verdict = afterSilence(now, DOWN)) {
      waitedMs += verdict.afterMs;
      now = verdict.attempt;
    }
    expect(waitedMs).toBe(10_000);
    expect(verdict).toEqual({ do: "fail", code: "control_unavailable", ran: "maybe" });
  });
});

test("when our link was down before anything was sent, it fails at once and did not run", () => {
  expect(afterSilence(FIRST_ATTEMPT, DOWN)).toEqual({ do: "fail", code: "control_unavailable", ran: "no" });
  expect(afterSilence(attempt({ noResponders: 2 }), DOWN)).toEqual({
    do: "fail",
    code: "control_unavailable",
    ran: "no",
  });
});

test("no silence is ever taken for a machine that does not exist", () => {
  const outcomes = [
    NOBODY,
    LOST,
    DOWN,
    { kind: "timeout", linkIsUp: true },
    { kind: "timeout", linkIsUp: false },
  ] as const;
  const codes = outcomes.flatMap((outcome) =>
    [FIRST_ATTEMPT, SENT, attempt({ noResponders: 3 })].map((now) => {
      const verdict = afterSilence(now, outcome);
      return verdict.do === "fail" ? verdict.code : verdict.do;
    }),
  );
  expect(new Set(codes)).toEqual(
    new Set(["retry", "ask_presence", "agent_reconnecting", "control_unavailable"]),
  );
});
