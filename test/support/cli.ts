import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { atEnd } from "./at-end.js";
import { until } from "./until.js";

export const CLI_MAIN = fileURLToPath(new URL("../../dist/control/cli/main.js", import.meta.url));

export interface CliRun {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

export interface CliProcess {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly ended: Promise<CliRun>;
}

/** Starts the farhand command as a shell would; ended with the test. */
export const startCli = (
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; stdin?: string | Uint8Array } = {},
): CliProcess => {
  const child = spawn(process.execPath, [CLI_MAIN, ...args], {
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
  const text = (chunks: Buffer[]) => (): string => Buffer.concat(chunks).toString();
  const ended = once(child, "close").then(() => ({
    stdout: text(out)(),
    stderr: text(err)(),
    code: child.exitCode,
  }));
  child.stdin.end(options.stdin);
  atEnd(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await ended;
    }
  });
  return { child, stdout: text(out), stderr: text(err), ended };
};

export const cli = (
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; stdin?: string | Uint8Array } = {},
): Promise<CliRun> => startCli(args, options).ended;

/** `farhand up` in a directory of its own, ready to be used. */
export const startUp = async (
  home: string,
  port: number,
  args: readonly string[] = [],
): Promise<CliProcess & { env: NodeJS.ProcessEnv }> => {
  const env = { FARHAND_HOME: home, FARHAND_URL: undefined };
  const up = startCli(["up", "--port", String(port), ...args], { env });
  atEnd(async () => {
    if (up.child.exitCode === null && up.child.signalCode === null) up.child.kill("SIGTERM");
    await up.ended;
  });
  await until(
    "farhand is up",
    () => {
      if (up.child.exitCode !== null) throw new Error(up.stderr());
      return up.stdout().includes("farhand is up");
    },
    20_000,
  );
  return { ...up, env };
};
