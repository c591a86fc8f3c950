import { expect, test } from "vitest";
import { outranks } from "../../../agent/wire/claim.js";

const claim = (generation: bigint, instanceId: string) => ({ generation, instanceId });

test.each([
  ["a higher generation", claim(2n, "a"), claim(1n, "b")],
  ["the greater id at the same generation", claim(1n, "b"), claim(1n, "a")],
  [
    "a generation one higher beyond what a float tells apart",
    claim(2n ** 53n + 1n, "a"),
    claim(2n ** 53n, "b"),
  ],
])("%s wins, and only one of the two does", (_what, winner, loser) => {
  expect(outranks(winner, loser)).toBe(true);
  expect(outranks(loser, winner)).toBe(false);
});

test("nobody outranks itself", () => {
  expect(outranks(claim(1n, "a"), claim(1n, "a"))).toBe(false);
});
