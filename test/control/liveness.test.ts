import { describe, expect, test } from "vitest";
import { isMachineGone, liveness } from "../../control/liveness.js";
import { FarhandError } from "../../proto/farhand-error.js";
import { FAULTS, isFaultCode } from "../../proto/faults.js";

describe("a machine", () => {
  test.each([
    [{ enrolled: true, probe: "answered", seenAgoMs: undefined }, "online"],
    [{ enrolled: true, probe: "answered", seenAgoMs: 9_999_999 }, "online"],
    [{ enrolled: true, probe: "missed", seenAgoMs: 0 }, "agent_reconnecting"],
    [{ enrolled: true, probe: "missed", seenAgoMs: 30_000 }, "agent_reconnecting"],
    [{ enrolled: true, probe: "missed", seenAgoMs: 30_001 }, "agent_offline"],
    [{ enrolled: true, probe: "missed", seenAgoMs: undefined }, "agent_offline"],
    [{ enrolled: false, probe: "answered", seenAgoMs: 0 }, "agent_offline"],
    [{ enrolled: false, probe: "missed", seenAgoMs: 0 }, "agent_offline"],
    [{ enrolled: false, probe: "missed", seenAgoMs: undefined }, "agent_offline"],
  ] as const)("of which is known %o is %s", (facts, state) => {
    expect(liveness(facts)).toBe(state);
  });
});

const codes = Object.keys(FAULTS).filter(isFaultCode);

test.each(codes)("%s never means that the machine is gone", (code) => {
  for (const ran of ["no", "maybe", "yes"] as const) {
    expect(isMachineGone(new FarhandError(code, "x", { ran }))).toBe(false);
  }
});

test("nothing else that can be thrown means it either", () => {
  for (const thrown of [new Error("gone"), "not found", undefined, null, { status: 404 }]) {
    expect(isMachineGone(thrown)).toBe(false);
  }
});
