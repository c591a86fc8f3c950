import { beforeAll, onTestFinished } from "vitest";

type End = () => void | Promise<void>;

let register: (end: End) => void = onTestFinished;

/** Undoes something when the test ends, or the file's tests if it was started by `shared`. */
export const atEnd = (end: End): void => register(end);

/** Starts something once for all tests of a file, and undoes it after the last one. */
export const shared = <T>(start: () => Promise<T>): (() => T) => {
  let value: T | undefined;
  beforeAll(async () => {
    const ends: End[] = [];
    register = (end) => void ends.push(end);
    try {
      value = await start();
    } finally {
      register = onTestFinished;
    }
    return async () => {
      for (const end of ends.toReversed()) await end();
    };
  });
  return () => {
    if (value === undefined) throw new Error("used before it was started");
    return value;
  };
};
