import { expect, test } from "vitest";
import { createRequestIds } from "../../control/request-id.js";

const newRequestId = createRequestIds();

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const timeOf = (id: string): number =>
  id
    .slice(0, 10)
    .split("")
    .reduce((time, char) => time * 32 + ALPHABET.indexOf(char), 0);

test.each([0, 1, 31, 32, 1_469_918_176_385, 1_700_000_000_000, 2 ** 48 - 1])(
  "an id made at %d is a ULID of that time",
  (now) => {
    const id = newRequestId(now);
    expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    expect(timeOf(id)).toBe(now);
  },
);

test("the time is written as the ULID specification's own example has it", () => {
  expect(newRequestId(1_469_918_176_385).slice(0, 10)).toBe("01ARYZ6S41");
});

test("ids sort by the time they were made at", () => {
  const times = [0, 1, 999, 1_000, 2 ** 31, 2 ** 32, 1_700_000_000_000, 1_700_000_000_001, 2 ** 48 - 1];
  const ids = times.map((time) => newRequestId(time));
  expect(ids.toSorted()).toEqual(ids);
});

test("ids of the same moment differ, over the whole of the alphabet", () => {
  const ids = Array.from({ length: 2_000 }, () => newRequestId(1_700_000_000_000));
  expect(new Set(ids).size).toBe(ids.length);
  expect(new Set(ids.flatMap((id) => id.slice(10).split(""))).size).toBe(ALPHABET.length);
});
