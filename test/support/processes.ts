import { readFileSync } from "node:fs";
import { until } from "./until.js";

/** Sends SIGSTOP and waits until the process has stopped. */
export const pause = async (pid: number): Promise<void> => {
  process.kill(pid, "SIGSTOP");
  await until(`${pid} has stopped`, () => {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  });
};

/** Is there a process with this pid that is not just waiting to be reaped? */
export const isAlive = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch {
    return false;
  }
};
