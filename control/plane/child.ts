import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";

/** A process that `farhand up` keeps running. */
export interface Child {
  readonly pid: number;
  /** Resolves with the exit code, or the name of the signal. */
  readonly exited: Promise<number | string>;
  /** TERM, and KILL if it is not gone in time. */
  stop(graceMs: number): Promise<void>;
}

const SETPRIV = "/usr/bin/setpriv";

/**
 * In a session of its own, so that Ctrl-C reaches `farhand up` alone, which stops its children in
 * order. Where the system can, a child also ends when its parent is killed.
 */
export const startChild = (
  command: string,
  args: readonly string[],
  options: { logFile: string; env?: NodeJS.ProcessEnv },
): Child => {
  const log = openSync(options.logFile, "a", 0o600);
  const withParent = process.platform === "linux" && existsSync(SETPRIV);
  const child: ChildProcess = spawn(
    withParent ? SETPRIV : command,
    withParent ? ["--pdeathsig", "TERM", command, ...args] : args,
    {
      detached: true,
      stdio: ["ignore", log, log],
      env: options.env ?? process.env,
    },
  );
  closeSync(log);
  const exited = new Promise<number | string>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown"));
    child.once("error", (error) => resolve(error.message));
  });
  return {
    pid: child.pid ?? 0,
    exited,
    async stop(graceMs) {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
      await exited;
      clearTimeout(timer);
    },
  };
};
