import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { identify, isSameProcess, readBootId } from "../../../../agent/host/processes/identity.js";
import { atEnd } from "../../../support/at-end.js";
import { until } from "../../../support/until.js";

const startSleep = async () => {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  const exited = once(child, "exit");
  await once(child, "spawn");
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  atEnd(end);
  return { pid: child.pid ?? 0, end };
};

test("this process is itself, and stays so", () => {
  const self = identify(process.pid);
  expect(self).toMatchObject({ pid: process.pid, boot: readBootId() });
  expect(self.started).toMatch(/^\d+$/);
  expect(isSameProcess(self)).toBe(true);
  expect(identify(process.pid)).toEqual(self);
});

test("a process is not there any more once it has ended", async () => {
  const { pid, end } = await startSleep();
  const identity = identify(pid);
  expect(isSameProcess(identity)).toBe(true);
  await end();
  expect(isSameProcess(identity)).toBe(false);
});

test("a process that was given the pid of an earlier one is another process", async () => {
  const { pid } = await startSleep();
  const earlier = { ...identify(pid), started: "1" };
  expect(isSameProcess(earlier)).toBe(false);
});

test("a process of an earlier boot is another process, though pid and start time are alike", () => {
  expect(isSameProcess({ ...identify(process.pid), boot: "00000000-0000-0000-0000-000000000000" })).toBe(
    false,
  );
});

test("where the start time cannot be told, a living pid counts as the same", async () => {
  const { pid, end } = await startSleep();
  const vague = { pid, started: "", boot: "" };
  expect(isSameProcess(vague)).toBe(true);
  await end();
  expect(isSameProcess(vague)).toBe(false);
});

test("a process that has ended and was not reaped is not there", async () => {
  // The shell becomes a sleep, which never reaps the child that the shell had started.
  const parent = spawn("sh", ["-c", "sleep 0.2 & echo $!; exec sleep 60"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const exited = once(parent, "exit");
  atEnd(async () => {
    parent.kill("SIGKILL");
    await exited;
  });
  const [line]: unknown[] = await once(parent.stdout, "data");
  const identity = identify(Number(String(line)));
  const stateOf = (): string =>
    readFileSync(`/proc/${identity.pid}/stat`, "latin1").split(") ")[1]?.charAt(0) ?? "";
  await until("the child is a zombie", () => stateOf() === "Z");
  expect(identify(identity.pid).started).toBe(identity.started);
  expect(isSameProcess(identity)).toBe(false);
});
