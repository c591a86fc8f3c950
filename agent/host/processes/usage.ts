import { readFileSync } from "node:fs";
import { readProcStat } from "./identity.js";

export interface Usage {
  readonly cpuMs: number | undefined;
  readonly peakMemoryBytes: number | undefined;
}

export interface UsageSampler {
  /** Called when the output has ended: the time on a processor can still be read, the memory is gone. */
  sampleEnd(): void;
  stop(): Usage;
}

const USER_TIME = 11;
const CHILD_SYSTEM_TIME = 14;
/** USER_HZ, which Linux keeps at 100 for every program. */
const MS_PER_TICK = 10;
const FIRST_DELAY_MS = 20;
const LONGEST_DELAY_MS = 1_000;
const TREE_LIMIT = 64;

const readText = (path: string): string => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
};

const childrenOf = (pid: number): number[] =>
  readText(`/proc/${pid}/task/${pid}/children`)
    .split(" ")
    .filter((text) => text !== "")
    .map(Number);

const descendants = (pid: number): number[] => {
  const pids = [pid];
  for (let at = 0; at < pids.length && pids.length < TREE_LIMIT; at++) {
    const parent = pids[at];
    if (parent !== undefined) pids.push(...childrenOf(parent));
  }
  return pids;
};

const peakOf = (pid: number): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readText(`/proc/${pid}/status`))?.[1] ?? 0) * 1024;

/** Time on a processor of the main thread, in milliseconds: finer than the ticks of stat. */
const runTimeMs = (pid: number): number =>
  Number(readText(`/proc/${pid}/schedstat`).split(" ")[0] ?? 0) / 1e6;

const ticksMs = (pid: number): number => {
  const stat = readProcStat(pid);
  if (stat === undefined) return 0;
  return (
    stat.slice(USER_TIME, CHILD_SYSTEM_TIME + 1).reduce((sum, ticks) => sum + Number(ticks), 0) * MS_PER_TICK
  );
};

/**
 * Node tells nothing about a child's use of processor and memory, so /proc is sampled: at growing
 * intervals, and when the output ends, which the kernel does before the process can be reaped.
 */
export const sampleUsage = (pid: number): UsageSampler => {
  if (process.platform !== "linux")
    return { sampleEnd: () => undefined, stop: () => ({ cpuMs: undefined, peakMemoryBytes: undefined }) };
  let cpuMs = 0;
  let peakMemoryBytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const sampleEnd = (): void => void (cpuMs = Math.max(cpuMs, ticksMs(pid), runTimeMs(pid)));
  const sample = (): void => {
    sampleEnd();
    for (const member of descendants(pid)) peakMemoryBytes = Math.max(peakMemoryBytes, peakOf(member));
  };
  const schedule = (delayMs: number): void => {
    timer = setTimeout(() => {
      sample();
      schedule(Math.min(LONGEST_DELAY_MS, delayMs * 2));
    }, delayMs);
  };
  schedule(FIRST_DELAY_MS);
  return {
    sampleEnd,
    stop() {
      clearTimeout(timer);
      return {
        cpuMs: cpuMs > 0 ? cpuMs : undefined,
        peakMemoryBytes: peakMemoryBytes > 0 ? peakMemoryBytes : undefined,
      };
    },
  };
};
