import { cpSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Call, Next, ResponseResult } from "../../../agent/call.js";
import { digestOfCall, once } from "../../../agent/steps/once.js";
import { type Journal, openJournal } from "../../../agent/store/journal.js";
import { FarhandError } from "../../../proto/farhand-error.js";
import { atEnd } from "../../support/at-end.js";
import { faultOf } from "../../support/fails.js";
import { temporaryDirectory } from "../../support/temporary.js";
import { callerOf, callOf, heldOp, removed } from "./call.js";

const NOW = 1_000_000;

const openAt = (stateDir: string, boot = "boot-1"): Journal => {
  const journal = openJournal({ stateDir, now: () => NOW, boot });
  atEnd(() => journal.close());
  return journal;
};

/** What a killed agent leaves: its files as they are at this moment. */
const afterKill = (stateDir: string): string => {
  const copy = temporaryDirectory();
  cpSync(join(stateDir, "journal.mdb"), join(copy, "journal.mdb"));
  return copy;
};

const pathTo = (act: Next, journal: Journal): Next => {
  const { recall, record } = once(journal);
  return recall(record(act));
};

const setUp = () => {
  const stateDir = temporaryDirectory();
  const op = heldOp();
  return { stateDir, op, path: pathTo(op.run, openAt(stateDir)) };
};

const never: Next = () => Promise.reject(new Error("ran again"));

describe("a request sent again", () => {
  test("while it runs joins the first, and both have its result", async () => {
    const { op, path } = setUp();
    const both = [path(callOf()), path(callOf())];
    op.finish(removed(true));
    expect(await Promise.all(both)).toEqual([removed(true), removed(true)]);
    expect(op.calls).toHaveLength(1);
  });

  test("while it runs joins the first in its failure too", async () => {
    const { op, path } = setUp();
    const both = [path(callOf()), path(callOf())].map(faultOf);
    op.fail(new FarhandError("not_found", "no such thing"));
    for (const one of both) expect(await one).toMatchObject({ code: "not_found", message: "no such thing" });
    expect(op.calls).toHaveLength(1);
  });

  test("after its end has the stored result", async () => {
    const { op, path } = setUp();
    const first = path(callOf());
    op.finish(removed(true));
    await first;
    expect(await path(callOf({ deadlineMs: NOW + 99_000, issuedMs: NOW + 5 }))).toMatchObject(removed(true));
    expect(op.calls).toHaveLength(1);
  });

  test("after its failure has the stored failure, with all it said", async () => {
    const { op, path } = setUp();
    const first = faultOf(path(callOf()));
    op.fail(new FarhandError("os", "no space", { ran: "maybe", detail: { errno: "ENOSPC" } }));
    await first;
    const again = await path(callOf());
    expect(again).toMatchObject({
      $case: "error",
      value: { code: "os", message: "no space", ran: "maybe", detail: { errno: "ENOSPC" } },
    });
    expect(op.calls).toHaveLength(1);
  });

  test("after a restart of the agent has the stored result", async () => {
    const { stateDir, op, path } = setUp();
    const first = path(callOf());
    op.finish(removed(true));
    await first;
    const again = pathTo(never, openAt(afterKill(stateDir)));
    expect(await again(callOf())).toMatchObject(removed(true));
  });

  test("after the agent was killed in the middle is indeterminate, each time", async () => {
    const { stateDir, op, path } = setUp();
    const first = path(callOf());
    const again = pathTo(never, openAt(afterKill(stateDir)));
    expect(await faultOf(again(callOf()))).toMatchObject({ code: "indeterminate", ran: "maybe" });
    expect(await faultOf(again(callOf()))).toMatchObject({ code: "indeterminate", ran: "maybe" });
    op.finish(removed(true));
    await first;
  });

  test("with another body or scope is a conflict, while it runs and after", async () => {
    const { op, path } = setUp();
    const first = path(callOf({ shell: "date" }));
    const others = [callOf({ shell: "reboot" }), callOf({ shell: "date", scope: "job" })];
    for (const other of others)
      expect(await faultOf(path(other))).toMatchObject({ code: "conflict", ran: "no" });
    op.finish(removed(true));
    await first;
    for (const other of others)
      expect(await faultOf(path(other))).toMatchObject({ code: "conflict", ran: "no" });
    expect(op.calls).toHaveLength(1);
  });
});

describe("what was issued before the machine went down", () => {
  const atBoot = async (issuedAgo: number): Promise<{ path: Next; call: Call }> => {
    const before = temporaryDirectory();
    openAt(before, "boot-1");
    const journal = openAt(afterKill(before), "boot-2");
    expect(journal.horizonMs).not.toBe(0);
    return {
      path: pathTo(async () => removed(true), journal),
      call: callOf({ issuedMs: journal.horizonMs - issuedAgo }),
    };
  };

  test("without a clean stop is indeterminate, since it may have been forgotten", async () => {
    const { path, call } = await atBoot(1);
    expect(await faultOf(path(call))).toMatchObject({ code: "indeterminate", ran: "maybe" });
  });

  test("and what was issued since may run", async () => {
    const { path, call } = await atBoot(0);
    expect(await path(call)).toEqual(removed(true));
  });

  test("may be asked again if it changes nothing", async () => {
    const { path, call } = await atBoot(1);
    expect(await path({ ...call, mutates: false })).toEqual(removed(true));
  });
});

describe("every request counts by itself", () => {
  test("the same id of another caller is a conflict: it neither runs nor tells what the other was told", async () => {
    const { op, path } = setUp();
    const alice = path(callOf({ caller: callerOf("alice") }));
    expect(await faultOf(path(callOf({ caller: callerOf("bob") })))).toMatchObject({ code: "conflict" });
    op.finish(removed(true));
    expect(await alice).toEqual(removed(true));
    expect(await faultOf(path(callOf({ caller: callerOf("bob") })))).toMatchObject({ code: "conflict" });
    expect(op.calls).toHaveLength(1);
  });

  test("what changes nothing is asked anew each time and leaves no trace", async () => {
    const journal = openAt(temporaryDirectory());
    let runs = 0;
    const path = pathTo(async (): Promise<ResponseResult> => removed(++runs > 1), journal);
    expect(await path(callOf({ mutates: false }))).toEqual(removed(false));
    expect(await path(callOf({ mutates: false }))).toEqual(removed(true));
    expect(journal.size().entries).toBe(0);
  });

  test("what was refused between recall and record may be sent again", async () => {
    const { recall, record } = once(openAt(temporaryDirectory()));
    let isOpen = false;
    const path = recall((call) => {
      if (!isOpen) throw new FarhandError("busy", "not now");
      return record(async () => removed(true))(call);
    });
    expect(await faultOf(path(callOf()))).toMatchObject({ code: "busy" });
    isOpen = true;
    expect(await path(callOf())).toEqual(removed(true));
  });
});

test("the digest is of what is asked and under which scope, not of when, by which lease or by which id", () => {
  const digest = digestOfCall(callOf());
  expect(digestOfCall(callOf({ requestId: "r-2", issuedMs: 1, deadlineMs: 2, epoch: 7n }))).toBe(digest);
  expect(digestOfCall(callOf({ shell: "reboot" }))).not.toBe(digest);
  expect(digestOfCall(callOf({ scope: "job" }))).not.toBe(digest);
});
