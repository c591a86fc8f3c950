import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createProcesses, type RunSpec } from "../../../../agent/host/processes/processes.js";
import { LIMITS } from "../../../../proto/limits.js";
import { atEnd } from "../../../support/at-end.js";
import { faultOf } from "../../../support/fails.js";
import { isAlive } from "../../../support/processes.js";
import { temporaryDirectory } from "../../../support/temporary.js";
import { until } from "../../../support/until.js";

const setUp = (stateDir = "/state/a") => {
  const root = temporaryDirectory();
  const processes = createProcesses({ root, stateDir: `${stateDir}-${process.pid}`, instanceId: "i-1" });
  const stop = new AbortController();
  const running: Promise<unknown>[] = [];
  const start = (shell: string, more: Partial<RunSpec> = {}) => {
    const outcome = processes.run({
      command: { shell },
      cwd: ".",
      env: {},
      stdin: undefined,
      timeoutMs: 20_000,
      graceMs: 100,
      maxOutputBytes: 1_000,
      keep: "head",
      signal: stop.signal,
      ...more,
    });
    running.push(outcome);
    return outcome;
  };
  atEnd(async () => {
    stop.abort();
    await Promise.allSettled(running);
    await processes.settled();
  });
  const pidIn = (name: string): Promise<number> =>
    until(name, () => Number(/^(\d+)\n/.exec(readFileSync(join(root, name), "utf8"))?.[1] ?? 0) || undefined);
  return { root, processes, start, stop, pidIn };
};

describe("the commands of an agent", () => {
  test("run in the root unless another directory is named", async () => {
    const { root, start } = setUp();
    expect((await start("pwd")).stdout.take().data.toString()).toBe(`${root}\n`);
    expect((await start("pwd", { cwd: "/" })).stdout.take().data.toString()).toBe("/\n");
  });

  test("beyond the number that may run at once are refused, until one has ended", async () => {
    const { start, stop } = setUp();
    const many = Array.from({ length: LIMITS.processes }, () => start("exec sleep 60"));
    expect(await faultOf(start("true"))).toMatchObject({ code: "busy", ran: "no", detail: { limit: "64" } });
    stop.abort();
    await Promise.all(many);
    const fresh = new AbortController().signal;
    expect((await start("exit 3", { signal: fresh })).end.exitCode).toBe(3);
  });

  test("that could not be started do not count", async () => {
    const { start } = setUp();
    const missing = { command: { argv: ["no-such-program-here"] as const } };
    for (let n = 0; n <= LIMITS.processes; n++) {
      expect(await faultOf(start("", missing))).toMatchObject({ code: "not_found" });
    }
  });

  test("are all gone when it has settled", async () => {
    const { start, stop, processes, pidIn } = setUp();
    const stubborn = start("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done");
    const pid = await pidIn("pid");
    stop.abort();
    await stubborn;
    expect(isAlive(pid)).toBe(true);
    await processes.settled();
    expect(isAlive(pid)).toBe(false);
  });

  test("that an earlier agent with the same state left behind are ended, and no others", async () => {
    const [earlier, other] = [setUp("/state/same"), setUp("/state/other")];
    void earlier.start("setsid sh -c 'trap \"\" TERM; echo $$ > pid; exec sleep 60' & wait");
    void other.start("echo $$ > pid; exec sleep 60");
    const [left, neighbour] = [await earlier.pidIn("pid"), await other.pidIn("pid")];
    expect(await setUp("/state/same").processes.endLeftovers()).toBeGreaterThan(0);
    expect(isAlive(left)).toBe(false);
    expect(isAlive(neighbour)).toBe(true);
    expect(await setUp("/state/none").processes.endLeftovers()).toBe(0);
  });
});
