import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { identify, type ProcessIdentity } from "../../../agent/host/processes/identity.js";
import { openState } from "../../../agent/store/state.js";
import { atEnd } from "../../support/at-end.js";
import { temporaryDirectory } from "../../support/temporary.js";

/** A living process to stand for an agent, which the test ends when it likes. */
const startOther = async () => {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  const exited = once(child, "exit");
  await once(child, "spawn");
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  atEnd(end);
  return { identity: identify(child.pid ?? 0), end };
};

const openAt = (stateDir: string, self: ProcessIdentity = identify(process.pid)) => {
  const state = openState(stateDir, self);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= state.close());
  atEnd(close);
  return { state, close };
};

describe("the state of an agent", () => {
  test("cannot be opened while the process that has it lives, and the refusal names that one", async () => {
    const stateDir = temporaryDirectory();
    const other = await startOther();
    openAt(stateDir, other.identity);
    const refusal = expect.objectContaining({
      name: "FarhandError",
      code: "conflict",
      ran: "no",
      detail: { pid: String(other.identity.pid), state: stateDir },
    });
    expect(() => openState(stateDir, identify(process.pid))).toThrow(refusal);
    expect(() => openState(stateDir, identify(process.pid))).toThrow(refusal);
  });

  test("can be opened once that process was killed", async () => {
    const stateDir = temporaryDirectory();
    const other = await startOther();
    const { state } = openAt(stateDir, other.identity);
    expect(state.generation).toBe(1);
    await other.end();
    expect(openAt(stateDir).state.generation).toBe(2);
  });

  test("can be opened once that process has closed it, though it lives", async () => {
    const stateDir = temporaryDirectory();
    const other = await startOther();
    await openAt(stateDir, other.identity).close();
    expect(openAt(stateDir).state.generation).toBe(2);
  });

  test("can be opened when another process has been given the pid", async () => {
    const stateDir = temporaryDirectory();
    const { identity } = await startOther();
    openAt(stateDir, { ...identity, started: "1" });
    expect(openAt(stateDir).state.generation).toBe(2);
  });

  test("that was copied, as in a cloned machine, is held by nobody", async () => {
    const stateDir = temporaryDirectory();
    const other = await startOther();
    openAt(stateDir, other.identity);
    const copy = temporaryDirectory();
    cpSync(join(stateDir, "state.mdb"), join(copy, "state.mdb"));
    expect(openAt(copy).state.generation).toBe(2);
  });

  test("counts every start, and a refused one not", async () => {
    const stateDir = temporaryDirectory();
    const generations: number[] = [];
    for (let start = 0; start < 3; start++) {
      const { state, close } = openAt(stateDir);
      generations.push(state.generation);
      expect(() => openState(stateDir, identify(process.pid))).toThrow(/another farhand-agent/);
      await close();
    }
    expect(generations).toEqual([1, 2, 3]);
  });

  test("goes beyond a generation that it heard of, and stays there", async () => {
    const stateDir = temporaryDirectory();
    const { state, close } = openAt(stateDir);
    expect(state.outbid(40)).toBe(41);
    expect(state.outbid(7)).toBe(42);
    expect(state.generation).toBe(42);
    await close();
    expect(openAt(stateDir).state.generation).toBe(43);
  });

  test("is for the owner's eyes only, also where it was open before", () => {
    const stateDir = temporaryDirectory();
    chmodSync(stateDir, 0o755);
    openAt(stateDir);
    expect(statSync(stateDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(stateDir, "state.mdb")).mode & 0o777).toBe(0o600);
  });
});
