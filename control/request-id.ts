import { randomBytes } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_CHARS = 10;
const RANDOM_CHARS = 16;

/** A ULID: 48 bits of time and 80 of chance, in an order that sorts by time. */
export const newRequestId = (nowMs: number): string => {
  let id = "";
  for (let rest = nowMs, at = 0; at < TIME_CHARS; at++, rest = Math.floor(rest / 32)) {
    id = ALPHABET.charAt(rest % 32) + id;
  }
  const random = randomBytes(RANDOM_CHARS);
  for (const byte of random) id += ALPHABET.charAt(byte % 32);
  return id;
};
