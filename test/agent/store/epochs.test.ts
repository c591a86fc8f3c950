import { describe, expect, test } from "vitest";
import { identify } from "../../../agent/host/processes/identity.js";
import { fence } from "../../../agent/steps/fence.js";
import { type Epochs, fenceDecision, openEpochs } from "../../../agent/store/epochs.js";
import { openState } from "../../../agent/store/state.js";
import { atEnd } from "../../support/at-end.js";
import { faultOf } from "../../support/fails.js";
import { temporaryDirectory } from "../../support/temporary.js";
import { callOf, heldOp, removed } from "../steps/call.js";

const fenced = expect.objectContaining({ name: "FarhandError", code: "fenced", ran: "no" });

const openAt = (stateDir: string) => {
  const state = openState(stateDir, identify(process.pid));
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= state.close());
  atEnd(close);
  return { epochs: openEpochs(state.db), close };
};

const admit = (epochs: Epochs, scope: string, epoch: bigint, mutates = true): void =>
  epochs.admit({ scope, epoch, mutates });

describe("a fence", () => {
  test.each([
    ["never set, no epoch, changing", undefined, 0n, true, "stay"],
    ["never set, no epoch, reading", undefined, 0n, false, "stay"],
    ["never set, some epoch, changing", undefined, 1n, true, "advance"],
    ["never set, some epoch, reading", undefined, 1n, false, "advance"],
    ["at 5, no epoch, reading", 5n, 0n, false, "stay"],
    ["at 5, the same epoch, changing", 5n, 5n, true, "stay"],
    ["at 5, the same epoch, reading", 5n, 5n, false, "stay"],
    ["at 5, a higher epoch, changing", 5n, 6n, true, "advance"],
    ["at 5, a higher epoch, reading", 5n, 6n, false, "advance"],
    ["at the last but one epoch, the last", 2n ** 63n - 2n, 2n ** 63n - 1n, true, "advance"],
  ] as const)("%s: it lets the request pass", (_cell, held, epoch, mutates, decision) => {
    expect(fenceDecision(held, { scope: "", epoch, mutates })).toBe(decision);
  });

  test.each([
    ["at 5, no epoch, changing", 5n, 0n, true],
    ["at 5, a lower epoch, changing", 5n, 4n, true],
    ["at 5, a lower epoch, reading", 5n, 4n, false],
    ["beyond what a float tells apart, one lower", 2n ** 53n + 1n, 2n ** 53n, true],
  ] as const)("%s: it refuses the request", (_cell, held, epoch, mutates) => {
    expect(() => fenceDecision(held, { scope: "job", epoch, mutates })).toThrow(fenced);
  });

  test("says which scope is held and how far the request is behind", () => {
    const refusal = expect.objectContaining({ detail: { scope: "job", held: "5", epoch: "4" } });
    expect(() => fenceDecision(5n, { scope: "job", epoch: 4n, mutates: true })).toThrow(refusal);
  });
});

describe("the epochs of a machine", () => {
  test("only grow", () => {
    const { epochs } = openAt(temporaryDirectory());
    for (const epoch of [3n, 7n, 7n]) admit(epochs, "job", epoch);
    for (const epoch of [0n, 1n, 6n]) expect(() => admit(epochs, "job", epoch)).toThrow(fenced);
    expect(epochs.list()).toEqual([{ scope: "job", epoch: 7n }]);
  });

  test("of one scope do not fence another, nor the machine as a whole", () => {
    const { epochs } = openAt(temporaryDirectory());
    admit(epochs, "job-a", 9n);
    admit(epochs, "job-b", 2n);
    admit(epochs, "", 1n);
    admit(epochs, "never-fenced", 0n);
    expect(() => admit(epochs, "job-a", 8n)).toThrow(fenced);
    expect(() => admit(epochs, "", 0n)).toThrow(fenced);
    expect(epochs.list()).toHaveLength(3);
  });

  test("are still held after the state was closed and opened", async () => {
    const stateDir = temporaryDirectory();
    const scopes = ["", "job", "ä\n:", "7"];
    const first = openAt(stateDir);
    for (const scope of scopes) admit(first.epochs, scope, 2n ** 60n);
    await first.close();
    const { epochs } = openAt(stateDir);
    for (const scope of scopes) {
      expect(() => admit(epochs, scope, 2n ** 60n - 1n)).toThrow(fenced);
      admit(epochs, scope, 2n ** 60n);
    }
    expect(
      epochs
        .list()
        .map(({ scope }) => scope)
        .toSorted(),
    ).toEqual(scopes.toSorted());
  });

  test("are advanced by a request that only reads", () => {
    const { epochs } = openAt(temporaryDirectory());
    admit(epochs, "job", 4n, false);
    expect(() => admit(epochs, "job", 3n)).toThrow(fenced);
  });
});

test("the step lets nothing of a lower epoch reach the op", async () => {
  const op = heldOp();
  const path = fence(openAt(temporaryDirectory()).epochs)(op.run);
  const holder = path(callOf({ scope: "job", epoch: 5n }));
  expect(await faultOf(path(callOf({ scope: "job", epoch: 4n })))).toMatchObject({
    code: "fenced",
    ran: "no",
  });
  op.finish(removed(true));
  expect(await holder).toEqual(removed(true));
  expect(op.calls).toHaveLength(1);
});
