import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { CommandExitError } from "../../../control/commands.js";
import { createTestFarhand } from "../../../control/testing/index.js";
import { FarhandError } from "../../../proto/farhand-error.js";

const start = (options = {}) => {
  const { farhand, machine } = createTestFarhand(options);
  const played = machine("box");
  return { played, box: farhand.machine("box") };
};

test("a scripted command gives its output, error output and exit code", async () => {
  const { played, box } = start();
  played.onRun("make test", { stdout: "3 passed\n", stderr: "slow\n", exitCode: 2 });
  expect(await box.commands.run("make test")).toMatchObject({
    stdout: "3 passed\n",
    stderr: "slow\n",
    exitCode: 2,
    signal: null,
    reason: "exited",
  });
});

test("a script sees what the caller asked for", async () => {
  const { played, box } = start();
  played.files.makeDir("app");
  played.onRun(({ line, argv, cwd, env, stdin }) => ({
    stdout: JSON.stringify({ line, argv, cwd, env, stdin }),
  }));
  const { stdout } = await box.commands.run(["sort", "-u"], {
    cwd: "app",
    env: { LANG: "C" },
    stdin: "b\na\n",
  });
  expect(JSON.parse(stdout)).toEqual({
    line: "sort -u",
    argv: ["sort", "-u"],
    cwd: "/home/test/app",
    env: { LANG: "C" },
    stdin: "b\na\n",
  });
});

test("a script may take its time", async () => {
  const { played, box } = start();
  played.onRun(async () => {
    await sleep(20);
    return { stdout: "late" };
  });
  expect((await box.commands.run("x")).stdout).toBe("late");
});

test("a text matches a whole shell line, a list whole arguments, a pattern both", async () => {
  const { played, box } = start();
  played.onRun(/./, { stdout: "any" });
  played.onRun(["git", "status"], { stdout: "argv" });
  played.onRun("git status", { stdout: "shell" });
  const out = async (command: string | string[]) => (await box.commands.run(command)).stdout;
  expect(await out("git status")).toBe("shell");
  expect(await out(["git", "status"])).toBe("argv");
  expect(await out("git status -s")).toBe("any");
  expect(await out(["git", "status", "-s"])).toBe("any");
});

test("of several scripts that match, the one added last plays", async () => {
  const { played, box } = start();
  played.onRun("date", { stdout: "first" });
  played.onRun("date", { stdout: "second" });
  expect((await box.commands.run("date")).stdout).toBe("second");
});

test("a command that nobody scripted is not found, and the message says what to do", async () => {
  const { played, box } = start();
  played.onRun("date", {});
  await expect(box.commands.run(["uptime"])).rejects.toMatchObject({
    code: "not_found",
    detail: { what: "command", command: "uptime" },
    message: expect.stringContaining("onRun"),
  });
});

test("a working directory that is not there is not found", async () => {
  const { played, box } = start();
  played.onRun("ls", {});
  await expect(box.commands.run("ls", { cwd: "/srv/app" })).rejects.toMatchObject({
    code: "not_found",
    detail: { what: "cwd", cwd: "/srv/app" },
  });
});

test("a script that ends by a signal has no exit code", async () => {
  const { played, box } = start();
  played.onRun("crash", { signal: "SIGSEGV" });
  expect(await box.commands.run("crash")).toMatchObject({
    reason: "signalled",
    signal: "SIGSEGV",
    exitCode: null,
  });
});

test("check turns a scripted failure into CommandExitError", async () => {
  const { played, box } = start();
  played.onRun("false", { exitCode: 1, stderr: "no\n" });
  const failed = box.commands.run("false", { check: true });
  await expect(failed).rejects.toBeInstanceOf(CommandExitError);
  await expect(failed).rejects.toThrow("false ended with exit code 1: no");
});

test("a FarhandError that a script throws is what the machine answers", async () => {
  const { played, box } = start();
  played.onRun("x", () => {
    throw new FarhandError("busy", "64 commands run already", { detail: { limit: "64" } });
  });
  await expect(box.commands.run("x")).rejects.toMatchObject({ code: "busy", detail: { limit: "64" } });
});

test("a script that returns nonsense is named as a defect", async () => {
  const { played, box } = start();
  played.onRun("x", () => JSON.parse('{"code": 1}'));
  await expect(box.commands.run("x")).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining('the script for "x"'),
  });
});

test("a script that does not end is timed out, with what it had printed", async () => {
  const { played, box } = start();
  let wasAborted = false;
  played.onRun("sleep 60", (command) => {
    command.print("started\n");
    command.signal.addEventListener("abort", () => (wasAborted = true));
    return new Promise(() => undefined);
  });
  const result = await box.commands.run("sleep 60", { timeoutMs: 30 });
  expect(result).toMatchObject({
    reason: "timed_out",
    stdout: "started\n",
    exitCode: null,
    signal: "SIGTERM",
  });
  expect(result.durationMs).toBeGreaterThanOrEqual(25);
  expect(wasAborted).toBe(true);
});

test("a caller that aborts ends the script, and the request is remembered as cancelled", async () => {
  const { played, box } = start();
  let begun: () => void;
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  let wasAborted = false;
  played.onRun("tail -f log", (command) => {
    begun();
    command.signal.addEventListener("abort", () => (wasAborted = true));
    return new Promise(() => undefined);
  });
  const abort = new AbortController();
  const run = box.commands.run("tail -f log", { signal: abort.signal, requestId: "r-1" });
  await hasBegun;
  abort.abort(new Error("enough"));
  await expect(run).rejects.toThrow("enough");
  const again = await box.commands.run("tail -f log", { requestId: "r-1" });
  expect(again.reason).toBe("cancelled");
  expect(wasAborted).toBe(true);
  expect(played.requests.map(({ op }) => op)).toEqual(["procRun", "cancel", "procRun"]);
});

test("more output than asked for is cut, at the end that was asked for", async () => {
  const { played, box } = start();
  played.onRun("seq", { stdout: "0123456789" });
  const cut = async (keep: "head" | "tail" | "head_tail") =>
    box.commands.run("seq", { keep, maxOutputBytes: 4 });
  expect(await cut("head")).toMatchObject({ stdout: "0123", stdoutTotalBytes: 10, stdoutTruncated: true });
  expect(await cut("tail")).toMatchObject({ stdout: "6789" });
  expect(await cut("head_tail")).toMatchObject({ stdout: "0789" });
});

test("two outputs that do not fit one message share it", async () => {
  const { played, box } = start({ maxPayloadBytes: 4096 });
  played.onRun("loud", { stdout: "o".repeat(10_000), stderr: "e".repeat(10_000) });
  played.onRun("half loud", { stdout: "o".repeat(10_000), stderr: "e" });
  const both = await box.commands.run("loud");
  expect([both.stdout.length, both.stderr.length]).toEqual([1536, 1536]);
  const one = await box.commands.run("half loud");
  expect([one.stdout.length, one.stderr.length]).toEqual([3071, 1]);
});
