import { type ChildProcess, spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { FarhandError } from "../../../proto/farhand-error.js";
import { errnoOf, osFault } from "../os-fault.js";
import { type Capture, type Keep, createCapture } from "./capture.js";
import { cleanEnvironment } from "./environment.js";
import { endTree, groupIsAlive, TREE_VARIABLE, type Tree } from "./tree.js";
import { sampleUsage, type UsageSampler } from "./usage.js";

export interface RunRequest {
  readonly command: { readonly argv: readonly [string, ...string[]] } | { readonly shell: string };
  readonly cwd: string;
  /** Cleaned already; see inheritedEnvironment. */
  readonly inherited: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array | undefined;
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly maxOutputBytes: number;
  readonly keep: Keep;
  readonly tag: string;
  readonly signal: AbortSignal;
}

export interface RunEnd {
  readonly reason: "exited" | "signalled" | "timed_out" | "cancelled";
  readonly exitCode: number | undefined;
  readonly signal: string;
  readonly durationMs: number;
  readonly cpuMs: number | undefined;
  readonly peakMemoryBytes: number | undefined;
}

export interface RunOutcome {
  readonly stdout: Capture;
  readonly stderr: Capture;
  readonly end: RunEnd;
  readonly envRemoved: string[];
  /** Settles when nothing of the tree is left; the answer does not wait for it. */
  readonly treeEnded: Promise<void>;
}

/** After the leader's exit its output is read until it ends, or until a descendant that holds it falls silent. */
const TAIL_QUIET_MS = 100;
const TAIL_MAX_MS = 1_000;
/** After TERM, the answer waits this long for the leader's own end. */
const AFTER_TERM_MS = 50;

type Stop = "timed_out" | "cancelled";

const spawnChild = async (request: RunRequest, env: Record<string, string>): Promise<ChildProcess> => {
  const [file, args] =
    "shell" in request.command
      ? ["/bin/sh", ["-c", request.command.shell]]
      : [request.command.argv[0], request.command.argv.slice(1)];
  let error: unknown;
  try {
    const child = spawn(file, args, {
      cwd: request.cwd,
      env: { ...env, [TREE_VARIABLE]: request.tag },
      detached: true,
      stdio: [request.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    if (child.pid !== undefined) return child;
    error = await new Promise((resolve) => child.once("error", resolve));
  } catch (thrown) {
    // Node tells of some errors by an event and throws others, such as ENOTDIR and E2BIG.
    error = thrown;
  }
  throw await spawnFault(error, file, request.cwd);
};

/** The system says ENOENT for a missing program and for a missing directory alike. */
const spawnFault = async (error: unknown, program: string, cwd: string): Promise<FarhandError> => {
  try {
    if (!(await stat(cwd)).isDirectory()) {
      return new FarhandError("invalid", `the working directory ${cwd} is not a directory`, {
        detail: { what: "cwd", cwd, errno: "ENOTDIR" },
      });
    }
  } catch (cwdError) {
    return osFault(cwdError, { subject: `the working directory ${cwd}`, detail: { what: "cwd", cwd } });
  }
  if (errnoOf(error) === "ENOENT") {
    return new FarhandError(
      "not_found",
      `the command ${program} does not exist on the machine, or is not on its PATH`,
      {
        detail: { what: "command", command: program, errno: "ENOENT" },
        advice: "give its full path, or install it on the machine",
      },
    );
  }
  return osFault(error, {
    subject: `the command ${program}`,
    detail: { what: "command", command: program },
    ran: "no",
  });
};

const collect = (
  child: ChildProcess,
  which: "stdout" | "stderr",
  capture: Capture,
  onData: () => void,
): Promise<void> =>
  new Promise((resolve) => {
    const stream = child[which];
    if (stream === null) return resolve();
    stream.on("data", (chunk: Buffer) => {
      capture.push(chunk);
      onData();
    });
    stream.on("error", () => resolve());
    stream.on("end", resolve);
    stream.on("close", resolve);
  });

const exitOf = (child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> =>
  new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));

const after = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

/** Resolves when the time limit passes or the caller cancels, whichever is first. */
const stopper = (request: RunRequest) => {
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  const stopped = new Promise<Stop>((resolve) => {
    timer = setTimeout(() => resolve("timed_out"), request.timeoutMs);
    onAbort = () => resolve("cancelled");
    if (request.signal.aborted) onAbort();
    else request.signal.addEventListener("abort", onAbort, { once: true });
  });
  return {
    stopped,
    clear() {
      clearTimeout(timer);
      if (onAbort !== undefined) request.signal.removeEventListener("abort", onAbort);
    },
  };
};

/** Runs a command to its end, its time limit or its cancellation, and leaves nothing of it behind. */
export const runCommand = async (request: RunRequest): Promise<RunOutcome> => {
  const { env, removed } = cleanEnvironment(request.inherited, request.env);
  const startedAt = performance.now();
  const child = await spawnChild(request, env);
  const tree: Tree = { pid: child.pid ?? 0, tag: request.tag };
  const usage: UsageSampler = sampleUsage(tree.pid);
  const stdout = createCapture(request.keep, request.maxOutputBytes);
  const stderr = createCapture(request.keep, request.maxOutputBytes);
  let lastData = startedAt;
  const onData = (): void => void (lastData = performance.now());

  const outputEnded = Promise.all([
    collect(child, "stdout", stdout, onData),
    collect(child, "stderr", stderr, onData),
  ]).then(() => usage.sampleEnd());
  let exit: { code: number | null; signal: NodeJS.Signals | null } | undefined;
  const exited = exitOf(child).then((how) => (exit = how));
  if (child.stdin !== null) {
    // A program need not read all of its input.
    child.stdin.on("error", () => undefined);
    child.stdin.end(request.stdin);
  }

  const { stopped, clear } = stopper(request);
  const outputSettled = async (): Promise<void> => {
    const until = performance.now() + TAIL_MAX_MS;
    while (performance.now() < until) {
      const ended = await Promise.race([
        outputEnded.then(() => true),
        after(TAIL_QUIET_MS / 4).then(() => false),
      ]);
      if (ended || performance.now() - lastData > TAIL_QUIET_MS) return;
    }
  };

  const how = await Promise.race([Promise.all([exited, outputEnded]), stopped, exited.then(outputSettled)]);
  clear();
  const stop: Stop | undefined = how === "timed_out" || how === "cancelled" ? how : undefined;
  let treeEnded: Promise<void> = Promise.resolve();
  if (stop !== undefined || groupIsAlive(tree.pid)) treeEnded = endTree(tree, request.graceMs);
  if (stop !== undefined) await Promise.race([Promise.all([exited, outputEnded]), after(AFTER_TERM_MS)]);
  child.stdout?.destroy();
  child.stderr?.destroy();
  child.stdin?.destroy();

  const signal = exit?.signal ?? "";
  const end: RunEnd = {
    reason: stop ?? (signal === "" ? "exited" : "signalled"),
    exitCode: exit?.code ?? undefined,
    signal,
    durationMs: performance.now() - startedAt,
    ...usage.stop(),
  };
  return { stdout, stderr, end, envRemoved: removed, treeEnded };
};
