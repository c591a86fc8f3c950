import { setTimeout as sleep } from "node:timers/promises";

/** Waits for something that no event announces; fails with the last error or what was awaited. */
export const until = async <T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 20_000,
): Promise<T> => {
  let last: unknown;
  for (const end = performance.now() + withinMs; performance.now() < end; await sleep(10)) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) return seen;
    } catch (error) {
      last = error;
    }
  }
  const why = last instanceof Error ? `: ${last.message}` : "";
  throw new Error(`${what}: not within ${withinMs} ms${why}`, { cause: last });
};
