import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connectTo, startPair } from "../support/agent.js";
import { shared } from "../support/at-end.js";
import { isAlive } from "../support/processes.js";
import { until } from "../support/until.js";

const pair = shared(startPair);

const pidIn = (path: string): Promise<number> =>
  until(path, () => Number(readFileSync(path, "utf8")) || undefined);

test("a time limit answers within 100 ms of it, with what was printed, though a grandchild holds the pipe", async () => {
  const startedAt = performance.now();
  const result = await pair().machine.commands.run(["sh", "-c", "echo before; sleep 6; echo x"], {
    timeoutMs: 300,
  });
  const took = performance.now() - startedAt;
  expect(result).toMatchObject({ reason: "timed_out", stdout: "before\n" });
  expect(took).toBeGreaterThan(290);
  // 100 ms after the limit on the machine; the rest is the way there and back.
  expect(result.durationMs).toBeLessThan(400);
  expect(took).toBeLessThan(1_000);
});

test("a client that goes away leaves nothing running past the time limit", async () => {
  const { server, root } = pair();
  const gone = connectTo(server.url);
  const pidFile = join(root, "vanished.pid");
  const lost = gone
    .machine("m1")
    .commands.run(`echo $$ > ${pidFile}; sleep 60`, { timeoutMs: 700, graceMs: 100 });
  lost.catch(() => undefined);
  const pid = await pidIn(pidFile);
  await gone.close();
  expect(isAlive(pid)).toBe(true);
  await until("the command has gone", () => !isAlive(pid), 3_000);
});

test("an aborted call ends its whole tree on the machine", async () => {
  const { machine, root } = pair();
  const pidFile = join(root, "aborted.pid");
  const controller = new AbortController();
  const running = machine.commands.run(`sleep 60 & echo $! > ${pidFile}; wait`, {
    signal: controller.signal,
    requestId: "aborted",
    graceMs: 100,
  });
  const pid = await pidIn(pidFile);
  controller.abort();
  await expect(running).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
  await until("the child has gone", () => !isAlive(pid), 3_000);
  const outcome = await machine.commands.run(`sleep 60 & echo $! > ${pidFile}; wait`, {
    requestId: "aborted",
    graceMs: 100,
  });
  expect(outcome.reason).toBe("cancelled");
});

test("ending a command reaches grandchildren that left its group, and escalates to KILL", async () => {
  const { machine, root } = pair();
  const names = ["leader", "stubborn", "session"];
  const script = `
    trap '' TERM
    echo $$ > leader.pid
    sh -c 'trap "" TERM; echo $$ > stubborn.pid; while :; do sleep 1; done' &
    setsid sh -c 'trap "" TERM; echo $$ > session.pid; while :; do sleep 1; done' &
    while :; do sleep 1; done`;
  const run = machine.commands.run(script, { timeoutMs: 600, graceMs: 200 });
  const pids = await Promise.all(names.map((name) => pidIn(join(root, `${name}.pid`))));
  expect((await run).reason).toBe("timed_out");
  for (const pid of pids) await until(`${pid} has gone`, () => !isAlive(pid), 3_000);
});

test("death by a signal names the signal", async () => {
  const result = await pair().machine.commands.run("kill -SEGV $$");
  expect(result).toMatchObject({ reason: "signalled", signal: "SIGSEGV", exitCode: null });
});

test("bytes that are not UTF-8 are kept", async () => {
  const { machine, root } = pair();
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  writeFileSync(join(root, "bytes"), bytes);
  const { stdoutBytes } = await machine.commands.run(["cat", "bytes"]);
  expect(Buffer.from(stdoutBytes).equals(bytes)).toBe(true);
  expect(Buffer.from(await machine.files.read("bytes", { format: "bytes" })).equals(bytes)).toBe(true);
});

test("more output than may be kept is counted, cut by the rule asked for and flagged", async () => {
  const { machine } = pair();
  const all = Array.from({ length: 10_000 }, (_, line) => `${line}\n`).join("");
  const print = "i=0; while [ $i -lt 10000 ]; do echo $i; i=$((i+1)); done";
  const head = await machine.commands.run(print, { maxOutputBytes: 100 });
  expect(head).toMatchObject({
    stdout: all.slice(0, 100),
    stdoutTotalBytes: all.length,
    stdoutTruncated: true,
    stderrTruncated: false,
  });
  const tail = await machine.commands.run(print, { maxOutputBytes: 100, keep: "tail" });
  expect(tail.stdout).toBe(all.slice(-100));
  const both = await machine.commands.run(print, { maxOutputBytes: 100, keep: "head_tail" });
  expect(both.stdout).toBe(all.slice(0, 30) + all.slice(-70));
});

test("output that does not fit one message is cut by the same rule and flagged", async () => {
  const { machine } = pair();
  const result = await machine.commands.run("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2", {
    maxOutputBytes: 3_000_000,
  });
  expect(result).toMatchObject({
    stdoutTotalBytes: 3_000_000,
    stderrTotalBytes: 3_000_000,
    stdoutTruncated: true,
    stderrTruncated: true,
  });
  expect(result.stdoutBytes.length).toBeGreaterThan(400_000);
  expect(result.stderrBytes.length).toBeGreaterThan(400_000);
});

test("a command tells its time on the processor, its memory and how long it took", async () => {
  const result = await pair().machine.commands.run("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
  expect(result.cpuMs).toBeGreaterThan(20);
  expect(result.cpuMs).toBeLessThan(result.durationMs * 1.5);
  expect(result.peakMemoryBytes).toBeGreaterThan(100_000);
});

test("a non-zero exit is a result, and with check an error that carries it", async () => {
  const { machine } = pair();
  expect((await machine.commands.run("exit 4")).exitCode).toBe(4);
  const checked = machine.commands.run("echo no >&2; exit 4", { check: true });
  await expect(checked).rejects.toThrow(
    expect.objectContaining({ name: "CommandExitError", result: expect.objectContaining({ exitCode: 4 }) }),
  );
});
