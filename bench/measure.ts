import { readdirSync, readFileSync } from "node:fs";

export const percentile = (times: readonly number[], share: number): number => {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};

/** Milliseconds of each of `count` calls, one after the other. */
export const oneByOne = async (count: number, call: () => Promise<unknown>): Promise<number[]> => {
  const times: number[] = [];
  for (let at = 0; at < count; at++) {
    const startedAt = performance.now();
    await call();
    times.push(performance.now() - startedAt);
  }
  return times;
};

/** Calls per second with so many in flight. */
export const throughput = async (
  count: number,
  inFlight: number,
  call: () => Promise<unknown>,
): Promise<number> => {
  let left = count;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left-- > 0) await call();
    }),
  );
  return (count / (performance.now() - startedAt)) * 1000;
};

/** Takes turns, so that what else the machine does falls on all alike. */
export const inTurns = async (rounds: number, turns: readonly (() => Promise<void>)[]): Promise<void> => {
  for (let round = 0; round < rounds; round++) for (const turn of turns) await turn();
};

export const rssMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN) / 1024;

/** Milliseconds on a processor so far, all threads; finer than the ticks of stat. */
export const cpuMs = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .map(
      (thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]) / 1e6,
    )
    .reduce((sum, ms) => sum + ms, 0);
