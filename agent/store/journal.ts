import { chmodSync, closeSync, fsyncSync, openSync, rmSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import { type Database, open } from "lmdb";
import { FarhandError } from "../../proto/farhand-error.js";
import { JOURNAL } from "../../proto/limits.js";
import { readBootId } from "../host/processes/identity.js";

/**
 * What was begun and how it ended, so that a request sent again is answered and not run again.
 *
 * Writes reach the operating system before they return, which is enough for a killed agent, but
 * are not flushed to the disk one by one. A boot that was not preceded by a clean stop may
 * therefore have lost the last of them: the journal then starts anew, and `horizonMs` says that
 * a request issued before it may have run without being remembered.
 */
export interface Journal {
  readonly horizonMs: number;
  lookup(key: string): JournalEntry | undefined;
  begin(key: string, entry: { digest: string; deadlineMs: number }): void;
  end(key: string, response: Uint8Array): void;
  size(): { entries: number; bytes: number };
  close(): Promise<void>;
}

export interface JournalEntry {
  readonly digest: string;
  /** Absent while it runs, and for ever when the agent died meanwhile. */
  readonly response: Uint8Array | undefined;
}

interface Begun {
  digest: string;
  deadlineMs: number;
  begunMs: number;
}

interface Kept {
  deadlineMs: number;
  begunMs: number;
  bytes: number;
}

const ENTRY_BYTES = 256;
const CLEAN = "\u0000clean";

export interface JournalOptions {
  readonly stateDir: string;
  readonly now: () => number;
  readonly keep?: { keepMs: number; keepEntries: number; keepBytes: number };
  /** Names the present boot; empty if that cannot be told. */
  readonly boot?: string;
}

const openStore = (path: string, flushed: boolean) => {
  const store = open({ path, noSubdir: true, noSync: !flushed });
  chmodSync(path, 0o600);
  return store;
};

const flushFile = (path: string): void => {
  const fd = openSync(path, "r+");
  fsyncSync(fd);
  closeSync(fd);
};

export const openJournal = ({
  stateDir,
  now,
  keep = JOURNAL,
  boot = readBootId(),
}: JournalOptions): Journal => {
  const path = join(stateDir, "journal.mdb");
  // Without a way to tell boots apart, every write is flushed instead.
  const flushed = boot === "";
  let horizonMs = 0;
  let store = openStore(path, flushed);
  const lastBoot: string | undefined = store.get(CLEAN);
  const trusted = flushed || lastBoot === undefined || lastBoot === "" || lastBoot === boot;
  if (!trusted) {
    void store.close();
    rmSync(path, { force: true });
    rmSync(`${path}-lock`, { force: true });
    store = openStore(path, flushed);
    horizonMs = now() - uptime() * 1000;
  }
  // Until the clean stop, a later boot must not trust what is written from here on.
  if (!flushed) store.putSync(CLEAN, boot);
  const begun: Database<Begun, string> = store.openDB({ name: "begun" });
  const responses: Database<Uint8Array, string> = store.openDB({ name: "responses", encoding: "binary" });

  const kept = new Map<string, Kept>();
  let bytes = 0;
  const remember = (key: string, entry: Kept): void => {
    kept.set(key, entry);
    bytes += entry.bytes;
  };
  const stored = [...begun.getRange()].toSorted((a, b) => a.value.begunMs - b.value.begunMs);
  for (const { key, value } of stored) {
    const response = responses.getBinaryFast(key);
    remember(key, {
      deadlineMs: value.deadlineMs,
      begunMs: value.begunMs,
      bytes: ENTRY_BYTES + (response?.length ?? 0),
    });
  }

  /** Begun by this agent and not ended: kept even when the deadline passes meanwhile. */
  const running = new Set<string>();

  const isFull = (): boolean => kept.size >= keep.keepEntries || bytes >= keep.keepBytes;

  /** Makes room for one more, and drops what is too old; the oldest come first. */
  const forget = (): void => {
    const nowMs = now();
    const dropped: string[] = [];
    for (const [key, entry] of kept) {
      const isOld = entry.begunMs < nowMs - keep.keepMs;
      if (!isOld && !isFull()) break;
      if (entry.deadlineMs >= nowMs || running.has(key)) continue;
      kept.delete(key);
      bytes -= entry.bytes;
      dropped.push(key);
    }
    if (dropped.length === 0) return;
    store.transactionSync(() => {
      for (const key of dropped) {
        begun.removeSync(key);
        responses.removeSync(key);
      }
    });
  };

  return {
    horizonMs,
    lookup(key) {
      const entry = begun.get(key);
      if (entry === undefined) return undefined;
      return { digest: entry.digest, response: responses.getBinary(key) };
    },
    begin(key, { digest, deadlineMs }) {
      forget();
      if (bytes >= keep.keepBytes) {
        throw new FarhandError(
          "busy",
          `the journal is full: ${bytes} bytes of answers are kept for requests whose deadline is still ahead`,
          {
            detail: { bytes: String(bytes), limit: String(keep.keepBytes) },
          },
        );
      }
      const entry = { digest, deadlineMs, begunMs: now() };
      begun.putSync(key, entry);
      remember(key, { deadlineMs, begunMs: entry.begunMs, bytes: ENTRY_BYTES });
      running.add(key);
    },
    end(key, response) {
      responses.putSync(key, response);
      running.delete(key);
      const entry = kept.get(key);
      if (entry !== undefined) entry.bytes += response.length;
      bytes += response.length;
    },
    size: () => ({ entries: kept.size, bytes }),
    async close() {
      // The mark says that all before it is on the disk, so it is written after that is so.
      flushFile(path);
      store.putSync(CLEAN, "");
      await store.close();
      flushFile(path);
    },
  };
};
