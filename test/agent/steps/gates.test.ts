import { describe, expect, test } from "vitest";
import { createRunning } from "../../../agent/running.js";
import { admit } from "../../../agent/steps/admit.js";
import { role } from "../../../agent/steps/role.js";
import { cancellable } from "../../../agent/steps/cancellable.js";
import { createGate } from "../../../agent/steps/drain.js";
import { faultOf } from "../../support/fails.js";
import { callerOf, callOf, heldOp, removed } from "./call.js";

/** Whether a promise has settled, asked after everything that was ready has run. */
const isSettled = async (promise: Promise<unknown>): Promise<boolean> => {
  let settled = false;
  void promise.then(() => (settled = true)).catch(() => (settled = true));
  await new Promise((resolve) => setImmediate(resolve));
  return settled;
};

describe("admission", () => {
  test("lets in as many as the limit, and the next when one has left", async () => {
    const op = heldOp();
    const path = admit(2)(op.run);
    const first = path(callOf());
    const second = path(callOf());
    expect(await faultOf(path(callOf()))).toMatchObject({
      code: "busy",
      ran: "no",
      detail: { running: "2", limit: "2" },
    });
    op.finish(removed(true));
    expect(await first).toEqual(removed(true));
    const third = path(callOf());
    expect(op.calls).toHaveLength(3);
    op.finish(removed(true));
    op.finish(removed(true));
    await Promise.all([second, third]);
  });

  test("counts one that failed as gone", async () => {
    const op = heldOp();
    const path = admit(1)(op.run);
    const failing = path(callOf());
    op.fail(new Error("no"));
    await expect(failing).rejects.toThrow("no");
    const next = path(callOf());
    op.finish(removed(true));
    expect(await next).toEqual(removed(true));
  });
});

describe("the gate", () => {
  test("closed with nobody inside is empty at once, and lets in only what changes nothing", async () => {
    const gate = createGate();
    const path = gate.step(async () => removed(true));
    await gate.close();
    expect(await faultOf(path(callOf()))).toMatchObject({ code: "draining", ran: "no" });
    expect(await path(callOf({ mutates: false }))).toEqual(removed(true));
  });

  test("waits for those inside, whether they end well or not, and refuses new ones meanwhile", async () => {
    const gate = createGate();
    const op = heldOp();
    const path = gate.step(op.run);
    const [first, second] = [path(callOf()), path(callOf())];
    const empty = gate.close();
    expect(await faultOf(path(callOf()))).toMatchObject({ code: "draining" });
    op.finish(removed(true));
    await first;
    expect(await isSettled(empty)).toBe(false);
    op.fail(new Error("no"));
    await expect(second).rejects.toThrow("no");
    await empty;
    expect(op.calls).toHaveLength(2);
  });
});

describe("a call that changes something", () => {
  test("can be cancelled by its caller under its id, and by nobody else", async () => {
    const running = createRunning();
    const op = heldOp();
    const under = cancellable(running)(op.run)(callOf({ requestId: "r-1", caller: callerOf("alice") }));
    expect(running.cancel(callerOf("bob"), "r-1")).toBe(false);
    expect(running.cancel(callerOf("alice"), "r-2")).toBe(false);
    expect(op.calls[0]?.signal.aborted).toBe(false);
    expect(running.cancel(callerOf("alice"), "r-1")).toBe(true);
    expect(op.calls[0]?.signal.aborted).toBe(true);
    op.finish(removed(true));
    await under;
    expect(running.cancel(callerOf("alice"), "r-1")).toBe(false);
  });

  test("is cancelled with all others of its caller when that one is revoked", async () => {
    const running = createRunning();
    const op = heldOp();
    const path = cancellable(running)(op.run);
    const both = ["alice", "bob"].map((name) => path(callOf({ requestId: name, caller: callerOf(name) })));
    running.cancelCaller(callerOf("alice").publicKey);
    expect(op.calls.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    op.finish(removed(true));
    op.finish(removed(true));
    await Promise.all(both);
  });

  test("is cancelled with all the others when the agent ends what still runs", async () => {
    const running = createRunning();
    const op = heldOp();
    const path = cancellable(running)(op.run);
    const both = [path(callOf({ requestId: "r-1" })), path(callOf({ requestId: "r-2" }))];
    running.cancelAll();
    expect(op.calls.map(({ signal }) => signal.aborted)).toEqual([true, true]);
    op.finish(removed(true));
    op.finish(removed(true));
    await Promise.all(both);
  });
});

describe("a reader", () => {
  const reader = callerOf("auditor", "reader");

  test("may ask what changes nothing, and is denied what changes something", async () => {
    const path = role(async () => removed(true));
    expect(await path(callOf({ caller: reader, mutates: false }))).toEqual(removed(true));
    const fault = await faultOf(path(callOf({ caller: reader })));
    expect(fault).toMatchObject({ code: "denied", detail: { rule: "role" } });
    expect(fault.message).toContain("auditor has read-only credentials");
    expect(await path(callOf())).toEqual(removed(true));
  });
});
