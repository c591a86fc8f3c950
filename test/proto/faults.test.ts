import { describe, expect, test } from "vitest";
import { FarhandError } from "../../proto/farhand-error.js";
import { type FaultCode, FAULTS, faultRow, isFaultCode, isRetryable } from "../../proto/faults.js";
import { AgentError } from "../../proto/gen/envelope.js";
import { AGENT_EXIT } from "../../proto/limits.js";

const codes = Object.keys(FAULTS).filter(isFaultCode);
const place = { machine: "w1/m1", requestId: "r-1" };

describe("the table", () => {
  test.each(codes)("%s has an exit code, an HTTP status and advice", (code) => {
    const { exit, http, advice, title } = faultRow(code);
    expect(exit).toBeGreaterThanOrEqual(64);
    expect(exit).toBeLessThanOrEqual(113);
    expect(http).toBeGreaterThanOrEqual(400);
    expect(http).toBeLessThanOrEqual(599);
    expect(title).toMatch(/^[A-Z].{8,}/);
    expect(advice).toMatch(/\w+ \w+ \w+/);
  });

  test("no two faults share an exit code, nor one with the agent's own", () => {
    const exits = codes.map((code) => faultRow(code).exit);
    expect(new Set(exits).size).toBe(exits.length);
    expect(exits).not.toContain(AGENT_EXIT.alreadyRunning);
    expect(exits).not.toContain(AGENT_EXIT.superseded);
  });

  test("what says that the machine does not answer is neither a 404 nor anything that means gone", () => {
    const silent: FaultCode[] = ["agent_offline", "agent_reconnecting", "control_unavailable", "draining"];
    expect(silent.map((code) => faultRow(code).http)).toEqual([503, 503, 503, 503]);
    expect(codes.filter((code) => faultRow(code).http === 404)).toEqual(["not_found"]);
    expect(codes.filter((code) => faultRow(code).http === 410)).toEqual([]);
  });

  test("only what did not run, or is recognised by its id, may be sent again", () => {
    for (const code of codes.filter(isRetryable)) expect(faultRow(code).ran).toBe("no");
    expect(isRetryable("indeterminate")).toBe(false);
    expect(isRetryable("timeout")).toBe(false);
    expect(isRetryable("expired")).toBe(false);
  });

  test.each(["constructor", "__proto__", "toString", "", "AGENT_OFFLINE"])("%j is no fault code", (code) => {
    expect(isFaultCode(code)).toBe(false);
  });
});

describe("an error", () => {
  test.each(codes)("%s comes over the wire as it was", (code) => {
    const sent = new FarhandError(code, "what happened", {
      ran: "maybe",
      detail: { errno: "EIO", path: "/x" },
    });
    const wire = sent.toAgentError();
    expect(wire).toMatchObject({ code, retryable: isRetryable(code) });
    const got = FarhandError.fromAgentError(wire, place);
    expect(got).toMatchObject({
      code,
      message: "what happened",
      ran: "maybe",
      detail: { errno: "EIO", path: "/x" },
      advice: faultRow(code).advice,
      ...place,
    });
    expect(got.retryable).toBe(sent.retryable);
    expect(got.reason).toBe(faultRow(code).reason);
  });

  test("with a code that this version does not know is protocol, and keeps what was said", () => {
    const wire = AgentError.fromPartial({
      code: "overheated",
      message: "too hot",
      retryable: true,
      ran: "yes",
      detail: { celsius: "99" },
      advice: "open a window",
    });
    const got = FarhandError.fromAgentError(wire, place);
    expect(got).toMatchObject({
      code: "protocol",
      ran: "yes",
      detail: { celsius: "99" },
      advice: "open a window",
      ...place,
    });
    expect(got.message).toMatch(/overheated.*too hot/);
  });

  test.each(["", "perhaps"])("that tells %j of having run may have run", (ran) => {
    const wire = AgentError.fromPartial({ code: "os", ran });
    expect(FarhandError.fromAgentError(wire, place).ran).toBe("maybe");
  });

  test("brings its own advice over the wire, and has the table's where an agent sends none", () => {
    const sent = new FarhandError("os", "x", { advice: "mend it" });
    expect(FarhandError.fromAgentError(sent.toAgentError(), place).advice).toBe("mend it");
    const silent = AgentError.fromPartial({ code: "os" });
    expect(FarhandError.fromAgentError(silent, place).advice).toBe(faultRow("os").advice);
  });

  test("that says no more takes whether it ran and what to do from the table", () => {
    for (const code of codes) {
      const { ran, advice } = new FarhandError(code, "x");
      expect({ ran, advice }).toEqual({ ran: faultRow(code).ran, advice: faultRow(code).advice });
    }
  });

  test("at a place is the same error with machine and request", () => {
    const cause = new Error("below");
    const error = new FarhandError("os", "x", { ran: "no", detail: { a: "b" }, advice: "mend it", cause });
    expect(error.at(place)).toMatchObject({
      code: "os",
      message: "x",
      ran: "no",
      detail: { a: "b" },
      advice: "mend it",
      cause,
      ...place,
    });
    const known = new FarhandError("os", "x", { requestId: "r-0" });
    expect(known.at({ machine: "w1/m1" }).requestId).toBe("r-0");
  });
});

describe("anything thrown", () => {
  test("stays itself if it is ours", () => {
    const error = new FarhandError("busy", "x");
    expect(FarhandError.from(error)).toBe(error);
  });

  test.each([
    [new TypeError("broken"), "broken"],
    ["broken", "broken"],
    [42, "42"],
    [null, "null"],
    [undefined, "undefined"],
  ])("is a defect that may have run if it is not: %s", (thrown, message) => {
    const error = FarhandError.from(thrown);
    expect(error).toMatchObject({ code: "internal", ran: "maybe", message });
    expect(error.cause).toBe(thrown);
  });
});
