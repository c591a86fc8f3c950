import { readFileSync } from "node:fs";

/** A process, told apart from a later one that was given the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in a form that only equality is asked of; empty where the system does not tell. */
  readonly started: string;
  readonly boot: string;
}

/** Names the current boot of this machine; empty where the system does not tell. */
export const readBootId = (): string => {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
};

/** The fields of /proc/<pid>/stat after the command, which may itself hold spaces and brackets. */
export const readProcStat = (pid: number): string[] | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
};

const STATE = 0;
const START_TIME = 19;

export const identify = (pid: number): ProcessIdentity => ({
  pid,
  started: readProcStat(pid)?.[START_TIME] ?? "",
  boot: readBootId(),
});

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
};

/** Is the process that was identified still there (and not a zombie)? */
export const isSameProcess = (identity: ProcessIdentity): boolean => {
  if (!exists(identity.pid)) return false;
  if (identity.started === "") return true;
  const stat = readProcStat(identity.pid);
  return (
    stat !== undefined &&
    stat[STATE] !== "Z" &&
    stat[START_TIME] === identity.started &&
    readBootId() === identity.boot
  );
};
