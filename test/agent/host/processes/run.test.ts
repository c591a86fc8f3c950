import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { inheritedEnvironment } from "../../../../agent/host/processes/environment.js";
import { type RunOutcome, type RunRequest, runCommand } from "../../../../agent/host/processes/run.js";
import { LIMITS } from "../../../../proto/limits.js";
import { atEnd } from "../../../support/at-end.js";
import { faultOf } from "../../../support/fails.js";
import { isAlive } from "../../../support/processes.js";
import { temporaryDirectory } from "../../../support/temporary.js";
import { until } from "../../../support/until.js";

let runs = 0;

/** Runs with the defaults of a test; the tree has gone when the test ends. */
const run = async (
  command: string | readonly [string, ...string[]],
  more: Partial<RunRequest> = {},
): Promise<RunOutcome> => {
  const outcome = await runCommand({
    command: typeof command === "string" ? { shell: command } : { argv: command },
    cwd: "/",
    inherited: inheritedEnvironment(process.env),
    env: {},
    stdin: undefined,
    timeoutMs: 10_000,
    graceMs: 200,
    maxOutputBytes: 1024 * 1024,
    keep: "head",
    tag: `test-${process.pid}-${++runs};`,
    signal: new AbortController().signal,
    ...more,
  });
  atEnd(() => outcome.treeEnded);
  return outcome;
};

const textOf = ({ stdout, stderr }: RunOutcome) => ({
  stdout: stdout.take().data.toString(),
  stderr: stderr.take().data.toString(),
});

/** The pids that a command wrote down, one a line. Whoever is left of them is ended with the test. */
const pidsIn = (path: string): number[] => {
  const pids = readFileSync(path, "utf8").split("\n").filter(Boolean).map(Number);
  atEnd(() => {
    for (const pid of pids.filter(isAlive)) process.kill(pid, "SIGKILL");
  });
  return pids;
};

describe("the end of a command", () => {
  test("tells its exit code, with both outputs apart", async () => {
    const outcome = await run("echo out; echo err >&2; exit 3");
    expect(outcome.end).toMatchObject({ reason: "exited", exitCode: 3, signal: "" });
    expect(textOf(outcome)).toEqual({ stdout: "out\n", stderr: "err\n" });
  });

  test.each(["SIGKILL", "SIGSEGV", "SIGTERM", "SIGHUP"])(
    "by %s tells the name of the signal",
    async (signal) => {
      const { end } = await run(`kill -s ${signal.slice(3)} $$`);
      expect(end).toMatchObject({ reason: "signalled", exitCode: undefined, signal });
    },
  );

  test("tells how long it took", async () => {
    const { end } = await run("sleep 0.2");
    expect(end.durationMs).toBeGreaterThanOrEqual(200);
    expect(end.durationMs).toBeLessThan(2_000);
  });

  test("tells the processor time and the memory of a busy one", async () => {
    const busy = `
      const held = Buffer.alloc(64 * 1024 * 1024, 1);
      while (process.cpuUsage().user < 400_000 || held[0] !== 1);`;
    const { end } = await run([process.execPath, "-e", busy]);
    expect(end).toMatchObject({ reason: "exited", exitCode: 0 });
    expect(end.cpuMs).toBeGreaterThan(300);
    expect(end.cpuMs).toBeLessThan(2_000);
    expect(end.peakMemoryBytes).toBeGreaterThan(64 * 1024 * 1024);
    expect(end.peakMemoryBytes).toBeLessThan(1024 * 1024 * 1024);
  });
});

describe("input and output", () => {
  test("bytes that are not text come through as they are, both ways", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 * 300 }, (_, at) => (at * 7) % 256));
    const outcome = await run(["cat"], { stdin: bytes });
    expect(outcome.end.exitCode).toBe(0);
    expect(outcome.stdout.take().data.equals(bytes)).toBe(true);
  });

  test("input is closed after its bytes, and at once when there are none", async () => {
    expect(textOf(await run(["wc", "-c"], { stdin: Buffer.from("12345") })).stdout.trim()).toBe("5");
    expect(textOf(await run(["wc", "-c"])).stdout.trim()).toBe("0");
  });

  test("a command that does not read its input ends well all the same", async () => {
    const { end } = await run(["true"], { stdin: Buffer.alloc(4 * 1024 * 1024) });
    expect(end).toMatchObject({ reason: "exited", exitCode: 0 });
  });

  test("a flood is counted whole and kept up to the limit", async () => {
    const outcome = await run("head -c 5000000 /dev/zero; head -c 10 /dev/zero >&2", {
      maxOutputBytes: 1_000,
    });
    expect(outcome.stdout.take()).toMatchObject({ totalBytes: 5_000_000, truncated: true, headBytes: 1_000 });
    expect(outcome.stdout.take().data).toHaveLength(1_000);
    expect(outcome.stderr.take()).toMatchObject({ totalBytes: 10, truncated: false });
  });

  test("arguments reach the program as they are, without a shell", async () => {
    const args = ["$HOME", "`id`", "a b", "-n", "*", "; exit 9", "new\nline", ""];
    const outcome = await run(["printf", "[%s]", ...args]);
    expect(textOf(outcome).stdout).toBe(args.map((arg) => `[${arg}]`).join(""));
  });

  test("a loader's variable that was asked for is not set, and the outcome says so", async () => {
    const asked = { LD_PRELOAD: "/x.so", NODE_OPTIONS: "--bad", FARHAND_TREE: "mine", GREETING: "hi" };
    const outcome = await run(["env"], { env: asked, tag: "kept-tag;" });
    const lines = textOf(outcome).stdout.split("\n");
    expect(outcome.envRemoved.toSorted()).toEqual(["FARHAND_TREE", "LD_PRELOAD", "NODE_OPTIONS"]);
    expect(lines).toContain("GREETING=hi");
    expect(lines).toContain("FARHAND_TREE=kept-tag;");
    expect(lines.filter((line) => /^(LD_PRELOAD|NODE_OPTIONS)=/.test(line))).toEqual([]);
  });

  test("it runs in the directory asked for", async () => {
    const cwd = temporaryDirectory();
    expect(textOf(await run("pwd", { cwd })).stdout).toBe(`${cwd}\n`);
  });
});

describe("a command that cannot be started", () => {
  test("because it does not exist is told apart", async () => {
    const fault = await faultOf(run(["no-such-program-here", "x"]));
    expect(fault).toMatchObject({
      code: "not_found",
      ran: "no",
      detail: { what: "command", errno: "ENOENT" },
    });
    expect(fault.message).toContain("no-such-program-here");
  });

  test("because its directory does not exist is told apart", async () => {
    const cwd = join(temporaryDirectory(), "missing");
    const fault = await faultOf(run(["true"], { cwd }));
    expect(fault).toMatchObject({
      code: "not_found",
      ran: "no",
      detail: { what: "cwd", cwd, errno: "ENOENT" },
    });
    expect(fault.message).toContain("working directory");
  });

  test("because its directory is a file is told apart", async () => {
    const cwd = join(temporaryDirectory(), "file");
    writeFileSync(cwd, "");
    const fault = await faultOf(run(["true"], { cwd }));
    expect(fault).toMatchObject({
      code: "invalid",
      ran: "no",
      detail: { what: "cwd", cwd, errno: "ENOTDIR" },
    });
  });

  test("because a part of its directory is a file is told apart", async () => {
    const file = join(temporaryDirectory(), "file");
    writeFileSync(file, "");
    const fault = await faultOf(run(["true"], { cwd: join(file, "below") }));
    expect(fault).toMatchObject({ code: "invalid", ran: "no", detail: { what: "cwd", errno: "ENOTDIR" } });
  });

  test("because it may not be run is denied, and names the user who may not", async () => {
    const directory = temporaryDirectory();
    const plain = join(directory, "plain");
    writeFileSync(plain, "#!/bin/sh\n", { mode: 0o644 });
    for (const program of [plain, directory]) {
      const fault = await faultOf(run([program]));
      expect(fault).toMatchObject({
        code: "denied",
        ran: "no",
        detail: { what: "command", errno: "EACCES" },
      });
      expect(fault.message).toContain(userInfo().username);
    }
  });

  test("because one argument is longer than the system takes is too large", async () => {
    const fault = await faultOf(run(["true", "x".repeat(200_000)]));
    expect(fault).toMatchObject({
      code: "too_large",
      ran: "no",
      detail: { what: "command", errno: "E2BIG" },
    });
  });
});

describe("the time limit", () => {
  test("is answered within 100 ms with what was printed, though a grandchild holds the pipe", async () => {
    const startedAt = performance.now();
    const outcome = await run("echo before; sleep 6; echo x", { timeoutMs: 300 });
    const tookMs = performance.now() - startedAt;
    expect(outcome.end.reason).toBe("timed_out");
    expect(textOf(outcome).stdout).toBe("before\n");
    expect(tookMs).toBeGreaterThanOrEqual(299);
    expect(tookMs).toBeLessThan(300 + LIMITS.runAnswerMs);
  });

  test("is answered in time by a command that ignores TERM, before that has ended", async () => {
    const pidFile = join(temporaryDirectory(), "pid");
    const startedAt = performance.now();
    const { end, treeEnded } = await run(`trap '' TERM; echo $$ > ${pidFile}; while :; do sleep 0.1; done`, {
      timeoutMs: 300,
      graceMs: 400,
    });
    expect(performance.now() - startedAt).toBeLessThan(300 + LIMITS.runAnswerMs);
    expect(end).toMatchObject({ reason: "timed_out", exitCode: undefined, signal: "" });
    const [leader = 0] = pidsIn(pidFile);
    expect(isAlive(leader)).toBe(true);
    await treeEnded;
    expect(isAlive(leader)).toBe(false);
  });

  test("lets a command that heeds TERM tidy up, and tells how it ended", async () => {
    const outcome = await run("trap 'echo tidy; exit 7' TERM; while :; do sleep 0.01; done", {
      timeoutMs: 300,
    });
    expect(outcome.end).toMatchObject({ reason: "timed_out", exitCode: 7 });
    expect(textOf(outcome).stdout).toBe("tidy\n");
  });

  test("leaves nobody of a tree of seven with new sessions, double forks and TERM ignored", async () => {
    const directory = temporaryDirectory();
    const stay = `echo $$ >> ${directory}/pids; exec sleep 60`;
    const stubborn = `trap "" TERM; ${stay}`;
    const tree = `
      echo $$ >> ${directory}/pids
      sh -c '${stay}' &
      sh -c '${stubborn}' &
      setsid sh -c '${stay}' &
      setsid sh -c '${stubborn}' &
      (sh -c '${stubborn}' &)
      (setsid sh -c '${stubborn}' &)
      wait`;
    const startedAt = performance.now();
    const outcome = await run(tree, { timeoutMs: 1_000, graceMs: 300 });
    expect(outcome.end.reason).toBe("timed_out");
    const pids = pidsIn(join(directory, "pids"));
    expect(new Set(pids).size).toBe(7);
    expect(pids.filter(isAlive).length).toBeGreaterThan(0);
    await outcome.treeEnded;
    expect(pids.filter(isAlive)).toEqual([]);
    expect(performance.now() - startedAt).toBeLessThan(1_000 + 300 + 1_000);
  });

  test("does not shoot a neighbour whose tag begins alike", async () => {
    const directory = temporaryDirectory();
    const controller = new AbortController();
    const neighbour = run(`echo $$ > ${directory}/pid; exec sleep 60`, {
      tag: `alike-${process.pid}:10;`,
      signal: controller.signal,
    });
    await until("the neighbour runs", () => readFileSync(join(directory, "pid"), "utf8").endsWith("\n"));
    const [pid = 0] = pidsIn(join(directory, "pid"));
    await (
      await run("sleep 60", { tag: `alike-${process.pid}:1;`, timeoutMs: 50, graceMs: 50 })
    ).treeEnded;
    expect(isAlive(pid)).toBe(true);
    controller.abort();
    expect((await neighbour).end.reason).toBe("cancelled");
  });
});

describe("a leader that exits before its background child", () => {
  test("is answered soon, and the child is ended", async () => {
    const pidFile = join(temporaryDirectory(), "pid");
    const startedAt = performance.now();
    const outcome = await run(`sleep 60 & echo $! > ${pidFile}; echo done; exit 5`);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(outcome.end).toMatchObject({ reason: "exited", exitCode: 5 });
    expect(textOf(outcome).stdout).toBe("done\n");
    const [child = 0] = pidsIn(pidFile);
    await outcome.treeEnded;
    expect(isAlive(child)).toBe(false);
  });

  test("gives what the child still prints at once", async () => {
    const outcome = await run("(sleep 0.05; echo late) & exit 0");
    expect(textOf(outcome).stdout).toBe("late\n");
  });
});

describe("cancelling", () => {
  test("ends the tree and says so", async () => {
    const directory = temporaryDirectory();
    const controller = new AbortController();
    const running = run(`echo up; sleep 60 & echo $! > ${directory}/pid; wait`, {
      signal: controller.signal,
    });
    await until("the child runs", () => readFileSync(join(directory, "pid"), "utf8").endsWith("\n"));
    const abortedAt = performance.now();
    controller.abort();
    const outcome = await running;
    expect(performance.now() - abortedAt).toBeLessThan(LIMITS.runAnswerMs);
    expect(outcome.end).toMatchObject({ reason: "cancelled" });
    expect(textOf(outcome).stdout).toBe("up\n");
    const [child = 0] = pidsIn(join(directory, "pid"));
    await outcome.treeEnded;
    expect(isAlive(child)).toBe(false);
  });

  test("before the start ends the command as soon as it runs", async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, "cwd"));
    const { end, treeEnded } = await run("sleep 0.3; touch ran", {
      cwd: join(directory, "cwd"),
      signal: AbortSignal.abort(),
    });
    expect(end.reason).toBe("cancelled");
    await treeEnded;
    expect(() => readFileSync(join(directory, "cwd", "ran"))).toThrow(/ENOENT/);
  });
});
