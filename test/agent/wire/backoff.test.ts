import { describe, expect, test } from "vitest";
import { createBackoff } from "../../../agent/wire/backoff.js";

const delays = (random: () => number, count: number): number[] => {
  const backoff = createBackoff({ minMs: 250, maxMs: 30_000, random });
  return Array.from({ length: count }, () => backoff.next());
};

describe("the delay before the next attempt", () => {
  test("raises its ceiling by half up to the longest, and stays there for ever", () => {
    const ceilings = delays(() => 1, 2_000);
    expect(ceilings.slice(0, 5)).toEqual([250, 375, 563, 844, 1_266]);
    expect(ceilings[11]).toBeLessThan(30_000);
    expect(ceilings[12]).toBe(30_000);
    expect(ceilings.at(-1)).toBe(30_000);
  });

  test("is never shorter than half of the shortest", () => {
    expect(new Set(delays(() => 0, 2_000))).toEqual(new Set([125]));
  });

  test("is spread over the whole range, so that a fleet does not come back at once", () => {
    const [low = 0, middle = 0, high = 0] = [0.1, 0.5, 0.9].map((at) => delays(() => at, 20).at(-1));
    expect(low).toBeLessThan(3_500);
    expect(middle).toBeGreaterThan(14_000);
    expect(high).toBeGreaterThan(26_000);
  });

  test("begins anew after a reset", () => {
    const backoff = createBackoff({ minMs: 250, maxMs: 30_000, random: () => 1 });
    for (let n = 0; n < 20; n++) backoff.next();
    backoff.reset();
    expect(backoff.next()).toBe(250);
  });
});
