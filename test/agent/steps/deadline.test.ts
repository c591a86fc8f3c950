import { describe, expect, test } from "vitest";
import { checkDeadline, deadline } from "../../../agent/steps/deadline.js";
import { LIMITS } from "../../../proto/limits.js";
import { faultOf } from "../../support/fails.js";
import { callOf, removed } from "./call.js";

const NOW = 1_700_000_000_000;
const fault = (code: string) => expect.objectContaining({ name: "FarhandError", code, ran: "no" });

describe("a request may start", () => {
  test.each([
    ["well before its deadline", { issuedMs: NOW, deadlineMs: NOW + 10_000 }],
    ["at its very deadline", { issuedMs: NOW - 10_000, deadlineMs: NOW }],
    ["that was issued long ago", { issuedMs: NOW - 3_000_000, deadlineMs: NOW + 1 }],
    [
      "by a caller whose clock is a little ahead",
      { issuedMs: NOW + LIMITS.clockToleranceMs, deadlineMs: NOW + 10_000 },
    ],
    [
      "whose deadline is as far ahead as is allowed",
      { issuedMs: NOW, deadlineMs: NOW + LIMITS.deadlineAheadMs },
    ],
    ["that does not say when it was issued", { issuedMs: 0, deadlineMs: NOW + 1 }],
  ])("%s", (_when, times) => {
    expect(() => checkDeadline(times, NOW)).not.toThrow();
  });
});

describe("a request is refused", () => {
  test.each([
    ["without a deadline", "invalid", { issuedMs: NOW, deadlineMs: 0 }],
    ["with a negative deadline", "invalid", { issuedMs: NOW, deadlineMs: -(2 ** 63) }],
    ["a millisecond after its deadline", "expired", { issuedMs: NOW - 10_000, deadlineMs: NOW - 1 }],
    ["that waited for a night", "expired", { issuedMs: NOW - 30_000_000, deadlineMs: NOW - 29_990_000 }],
    [
      "issued in the future",
      "expired",
      { issuedMs: NOW + LIMITS.clockToleranceMs + 1, deadlineMs: NOW + 10_000 },
    ],
    [
      "with a deadline too far ahead",
      "invalid",
      { issuedMs: NOW, deadlineMs: NOW + LIMITS.deadlineAheadMs + 1 },
    ],
    ["with a deadline at the end of time", "invalid", { issuedMs: NOW, deadlineMs: 2 ** 63 }],
    ["issued at the end of time", "expired", { issuedMs: 2 ** 63, deadlineMs: 2 ** 63 }],
  ])("%s as %s", (_when, code, times) => {
    expect(() => checkDeadline(times, NOW)).toThrow(fault(code));
  });

  test("with the machine's time in the answer when it came too late", () => {
    const times = { issuedMs: NOW - 10_000, deadlineMs: NOW - 1 };
    const machineTime = "2023-11-14T22:13:20.000Z";
    expect(() => checkDeadline(times, NOW)).toThrow(expect.objectContaining({ detail: { machineTime } }));
  });
});

test("the step looks at the clock when the request is about to start", async () => {
  let now = 1_000_000;
  const path = deadline(() => now)(async () => removed(true));
  expect(await path(callOf())).toEqual(removed(true));
  now = 1_010_001;
  expect(await faultOf(path(callOf()))).toMatchObject({ code: "expired", ran: "no" });
});
