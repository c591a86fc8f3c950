import { randomFillSync } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_CHARS = 10;
const RANDOM_CHARS = 16;
/** Asking the system for a few bytes costs as much as asking for many. */
const POOL_BYTES = 256 * RANDOM_CHARS;

const timePart = (nowMs: number): string => {
  let text = "";
  for (let rest = nowMs, at = 0; at < TIME_CHARS; at++, rest = Math.floor(rest / 32)) {
    text = ALPHABET.charAt(rest % 32) + text;
  }
  return text;
};

/** Makes ULIDs: 48 bits of time and 80 of chance, in an order that sorts by time. */
export const createRequestIds = (): ((nowMs: number) => string) => {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  let lastMs = Number.NaN;
  let lastTime = "";
  return (nowMs) => {
    if (used + RANDOM_CHARS > POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    if (nowMs !== lastMs) {
      lastMs = nowMs;
      lastTime = timePart(nowMs);
    }
    let id = lastTime;
    for (const end = used + RANDOM_CHARS; used < end; used++) id += ALPHABET.charAt((pool[used] ?? 0) % 32);
    return id;
  };
};
