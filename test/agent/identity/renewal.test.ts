import { expect, test } from "vitest";
import { nextRenewalMs, renewAtMs, retryDelayMs } from "../../../agent/identity/renewal.js";
import { refusedDelayMs } from "../../../agent/wire/backoff.js";

const HOUR = 3_600_000;
const day = { issuedMs: 0, expiresMs: 24 * HOUR };

test("a JWT is renewed from half of its life on, and not by all machines at once", () => {
  expect(renewAtMs(day, 0)).toBe(12 * HOUR);
  expect(renewAtMs(day, 1)).toBeGreaterThan(12 * HOUR);
  expect(renewAtMs(day, 1)).toBeLessThan(14 * HOUR);
});

test("a JWT that does not expire is never renewed", () => {
  expect(renewAtMs({ issuedMs: 0, expiresMs: Infinity }, 0)).toBe(Infinity);
});

test("after failures the delays grow, and many tries are left before the end", () => {
  const delays = [1, 2, 3, 4, 20].map((failures) => retryDelayMs(failures, 12 * HOUR));
  expect(delays).toEqual([5_000, 10_000, 20_000, 40_000, 900_000]);
  let leftMs = 12 * HOUR;
  let tries = 0;
  for (let failures = 1; leftMs > 0 && tries < 1_000; failures++, tries++)
    leftMs -= retryDelayMs(failures, leftMs);
  expect(tries).toBeGreaterThan(50);
  expect(retryDelayMs(5, -HOUR)).toBe(500);
});

test("a clock that is days ahead does not make a machine renew without pause", () => {
  expect(nextRenewalMs(day, 72 * HOUR, 0)).toBe(3 * HOUR);
  expect(nextRenewalMs(day, HOUR, 0)).toBe(11 * HOUR);
});

test("a bus that refuses is asked ever more rarely, down to every five minutes", () => {
  expect([1, 2, 3].map((refusals) => refusedDelayMs(refusals, 1))).toEqual([2_000, 4_000, 8_000]);
  expect(refusedDelayMs(30, 1)).toBe(300_000);
  expect(refusedDelayMs(30, 0)).toBe(225_000);
});
