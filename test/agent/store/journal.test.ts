import { cpSync, statSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Journal, openJournal } from "../../../agent/store/journal.js";
import { atEnd } from "../../support/at-end.js";
import { temporaryDirectory } from "../../support/temporary.js";

const KEEP = { keepMs: 1_000_000, keepEntries: 1_000, keepBytes: 10_000_000 };
const RESPONSE = Buffer.from([0, 1, 2, 255]);

/** A journal with a clock that the test sets; closed once, by the test or at its end. */
const openAt = (
  stateDir: string,
  { boot = "boot-1", keep = {} }: { boot?: string; keep?: Partial<typeof KEEP> } = {},
) => {
  const clock = { now: 1_000_000 };
  const journal = openJournal({ stateDir, boot, now: () => clock.now, keep: { ...KEEP, ...keep } });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= journal.close());
  atEnd(close);
  const add = (
    key: string,
    { deadlineMs = clock.now + 10, response = RESPONSE }: { deadlineMs?: number; response?: Buffer } = {},
  ) => {
    journal.begin(key, { digest: `digest of ${key}`, deadlineMs });
    journal.end(key, response);
  };
  return { journal, clock, close, add };
};

/** What a killed agent leaves: its files as they are at this moment. */
const afterKill = (stateDir: string): string => {
  const copy = temporaryDirectory();
  cpSync(join(stateDir, "journal.mdb"), join(copy, "journal.mdb"));
  return copy;
};

const keysOf = (journal: Journal, keys: readonly string[]): string[] =>
  keys.filter((key) => journal.lookup(key) !== undefined);

const full = expect.objectContaining({ name: "FarhandError", code: "busy", ran: "no" });

describe("what is written", () => {
  test("is found again: nothing, begun, ended", () => {
    const { journal } = openAt(temporaryDirectory());
    expect(journal.lookup("a")).toBeUndefined();
    journal.begin("a", { digest: "d", deadlineMs: 1_000_010 });
    expect(journal.lookup("a")).toEqual({ digest: "d", response: undefined });
    journal.end("a", RESPONSE);
    expect(journal.lookup("a")).toEqual({ digest: "d", response: RESPONSE });
    expect(journal.lookup("b")).toBeUndefined();
  });

  test.each(["closed and opened", "killed and opened"])(
    "is found again after the journal was %s",
    async (how) => {
      const stateDir = temporaryDirectory();
      const { journal, close, add } = openAt(stateDir);
      add("ended");
      journal.begin("begun", { digest: "d", deadlineMs: 1_000_010 });
      if (how === "closed and opened") await close();
      const again = openAt(how === "closed and opened" ? stateDir : afterKill(stateDir)).journal;
      expect(again.lookup("ended")).toEqual({ digest: "digest of ended", response: RESPONSE });
      expect(again.lookup("begun")).toEqual({ digest: "d", response: undefined });
      expect(again.horizonMs).toBe(0);
      expect(again.size()).toEqual(journal.size());
    },
  );

  test("is for the owner's eyes only", () => {
    const stateDir = temporaryDirectory();
    openAt(stateDir);
    expect(statSync(join(stateDir, "journal.mdb")).mode & 0o777).toBe(0o600);
  });

  test("under strange keys is kept apart", () => {
    const { journal, add } = openAt(temporaryDirectory());
    const keys = ["", "a\nb", "a", "\0", "7", "ä".repeat(128)].map((id) => `caller\n${id}`);
    for (const key of keys) add(key, { response: Buffer.from(key) });
    for (const key of keys) expect(journal.lookup(key)?.response?.toString()).toBe(key);
    expect(journal.size().entries).toBe(keys.length);
  });
});

describe("after the machine went down", () => {
  test("without a clean stop, the journal begins anew and says from when it can be trusted", () => {
    const stateDir = temporaryDirectory();
    openAt(stateDir, { boot: "boot-1" }).add("a");
    const second = afterKill(stateDir);
    const { journal, clock, add } = openAt(second, { boot: "boot-2" });
    expect(journal.lookup("a")).toBeUndefined();
    expect(journal.size()).toEqual({ entries: 0, bytes: 0 });
    expect(Math.abs(journal.horizonMs - (clock.now - uptime() * 1_000))).toBeLessThan(5_000);
    add("b");
    const again = openAt(afterKill(second), { boot: "boot-2" });
    expect(keysOf(again.journal, ["a", "b"])).toEqual(["b"]);
  });

  test("and again without one, it begins anew again", () => {
    const stateDir = temporaryDirectory();
    openAt(stateDir, { boot: "boot-1" });
    const second = afterKill(stateDir);
    openAt(second, { boot: "boot-2" }).add("b");
    const { journal } = openAt(afterKill(second), { boot: "boot-3" });
    expect(journal.lookup("b")).toBeUndefined();
    expect(journal.horizonMs).not.toBe(0);
  });

  test("with a clean stop, everything is there", async () => {
    const stateDir = temporaryDirectory();
    const { add, close } = openAt(stateDir, { boot: "boot-1" });
    add("a");
    await close();
    const { journal } = openAt(stateDir, { boot: "boot-2" });
    expect(journal.lookup("a")?.response).toEqual(RESPONSE);
    expect(journal.horizonMs).toBe(0);
  });

  test("where boots cannot be told apart, everything is there, since every write was flushed", () => {
    const stateDir = temporaryDirectory();
    openAt(stateDir, { boot: "" }).add("a");
    const { journal } = openAt(afterKill(stateDir), { boot: "" });
    expect(journal.lookup("a")?.response).toEqual(RESPONSE);
    expect(journal.horizonMs).toBe(0);
  });
});

describe("an entry is dropped after its deadline", () => {
  test("when it is older than the time to keep", () => {
    const { journal, clock, add } = openAt(temporaryDirectory(), { keep: { keepMs: 100 } });
    add("old");
    clock.now += 50;
    add("newer");
    clock.now += 60;
    add("now");
    expect(keysOf(journal, ["old", "newer", "now"])).toEqual(["newer", "now"]);
    expect(journal.size().entries).toBe(2);
  });

  test("when there are more than the number to keep, the oldest first", () => {
    const { journal, clock, add } = openAt(temporaryDirectory(), { keep: { keepEntries: 3 } });
    for (const key of ["a", "b", "c", "d", "e"]) {
      add(key);
      clock.now += 100;
    }
    expect(keysOf(journal, ["a", "b", "c", "d", "e"])).toEqual(["c", "d", "e"]);
    expect(journal.size().entries).toBe(3);
  });

  test("when they take more than the bytes to keep, as many as need be", () => {
    const { journal, clock, add } = openAt(temporaryDirectory(), { keep: { keepBytes: 10_000 } });
    for (const key of ["a", "b", "c"]) {
      add(key, { response: Buffer.alloc(4_000) });
      clock.now += 100;
    }
    add("d");
    expect(keysOf(journal, ["a", "b", "c", "d"])).toEqual(["b", "c", "d"]);
    expect(journal.size().bytes).toBeLessThan(10_000);
  });

  test("when the bytes to keep are just reached", () => {
    const { journal, clock, add } = openAt(temporaryDirectory());
    add("a");
    const keepBytes = journal.size().bytes;
    const exact = openAt(temporaryDirectory(), { keep: { keepBytes } });
    exact.add("a");
    exact.clock.now += 100;
    exact.add("b");
    expect(keysOf(exact.journal, ["a", "b"])).toEqual(["b"]);
    expect(clock.now).toBe(1_000_000);
  });

  test("and its place on the disk is free again after the next opening", async () => {
    const stateDir = temporaryDirectory();
    const { journal, clock, close, add } = openAt(stateDir, { keep: { keepEntries: 1 } });
    add("a");
    clock.now += 100;
    add("b");
    const size = journal.size();
    await close();
    const again = openAt(stateDir).journal;
    expect(again.size()).toEqual(size);
    expect(again.lookup("a")).toBeUndefined();
  });

  test("also when an earlier agent never ended it", async () => {
    const stateDir = temporaryDirectory();
    const first = openAt(stateDir);
    first.journal.begin("a", { digest: "d", deadlineMs: first.clock.now + 10 });
    await first.close();
    const { journal, clock, add } = openAt(stateDir, { keep: { keepEntries: 1 } });
    clock.now += 100;
    add("b");
    expect(keysOf(journal, ["a", "b"])).toEqual(["b"]);
  });
});

describe("an entry is never dropped", () => {
  test("before its deadline, however old, many or large", () => {
    const keep = { keepMs: 1, keepEntries: 2, keepBytes: 100_000 };
    const { journal, clock, add } = openAt(temporaryDirectory(), { keep });
    const keys = ["a", "b", "c", "d"];
    for (const key of keys) {
      add(key, { deadlineMs: 1_000_100 });
      clock.now += 25;
    }
    expect(clock.now).toBe(1_000_100);
    add("e", { deadlineMs: 1_000_100 });
    expect(keysOf(journal, keys)).toEqual(keys);
    clock.now = 1_000_101;
    add("f");
    expect(keysOf(journal, [...keys, "e"]).length).toBeLessThan(2);
  });

  test("behind one whose deadline is ahead, if its own has passed: that one goes", () => {
    const { journal, clock, add } = openAt(temporaryDirectory(), { keep: { keepEntries: 2 } });
    add("long", { deadlineMs: clock.now + 10_000 });
    add("short");
    clock.now += 100;
    add("next");
    expect(keysOf(journal, ["long", "short", "next"])).toEqual(["long", "next"]);
  });

  test("while it runs, though its deadline has passed", () => {
    const { journal, clock, add } = openAt(temporaryDirectory(), { keep: { keepEntries: 1 } });
    journal.begin("running", { digest: "d", deadlineMs: clock.now + 10 });
    clock.now += 100;
    add("next");
    journal.end("running", RESPONSE);
    expect(journal.lookup("running")).toEqual({ digest: "d", response: RESPONSE });
    clock.now += 100;
    add("last");
    expect(keysOf(journal, ["running", "next", "last"])).toEqual(["last"]);
    const alone = openAt(temporaryDirectory());
    alone.add("last");
    expect(journal.size()).toEqual(alone.journal.size());
  });
});

test("a journal full of entries whose deadline is ahead is busy, and takes new ones when it has passed", () => {
  const { journal, clock, add } = openAt(temporaryDirectory(), { keep: { keepBytes: 2_000 } });
  add("large", { response: Buffer.alloc(2_000), deadlineMs: clock.now + 10_000 });
  expect(() => add("next")).toThrow(full);
  expect(journal.lookup("next")).toBeUndefined();
  expect(journal.lookup("large")).toBeDefined();
  clock.now += 10_001;
  add("next");
  expect(keysOf(journal, ["large", "next"])).toEqual(["next"]);
});
