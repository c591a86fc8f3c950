import { expect, test } from "vitest";
import { createTestFarhand } from "../../../control/testing/index.js";
import { FarhandError } from "../../../proto/farhand-error.js";

const problem = (wrong: () => unknown): string => {
  try {
    wrong();
  } catch (error) {
    if (error instanceof FarhandError && error.code === "invalid") return error.message;
    throw error;
  }
  return "none";
};

/** Something that the types would not let a test pass. */
const untyped = (text: string) => JSON.parse(text);

test("machines of the same name in two workspaces are two machines", async () => {
  const { farhand, machine } = createTestFarhand({ workspace: "prod" });
  machine("box").files.set("name", "prod");
  machine("lab/box").files.set("name", "lab");
  expect(await farhand.machine("box").files.read("name")).toBe("prod");
  expect(await farhand.machine("lab/box").files.read("name")).toBe("lab");
  expect(machine("prod/box")).toBe(machine("box"));
});

test("describe tells what the machine is", async () => {
  const { farhand, machine } = createTestFarhand({ root: "/srv" });
  machine("box");
  expect(await farhand.machine("box").describe()).toMatchObject({
    workspace: "default",
    machine: "box",
    root: "/srv",
    capabilities: { commands: { available: true }, terminals: { available: false, reason: "unsupported" } },
  });
});

test("wrong options are named where they are given", () => {
  expect(problem(() => createTestFarhand({ workspace: "No" }))).toMatch(/workspace: must be/);
  expect(problem(() => createTestFarhand({ root: "srv" }))).toMatch(/root: is not an absolute path/);
  expect(problem(() => createTestFarhand({ maxPayloadBytes: 1 }))).toMatch(/maxPayloadBytes: is less/);
  expect(problem(() => createTestFarhand(untyped('{"clock": {}}')))).toMatch(/clock: has not now/);
  expect(problem(() => createTestFarhand(untyped('{"machines": []}')))).toMatch(/machines/);
});

test("wrong switches are named, and change nothing", async () => {
  const { farhand, machine, setLink } = createTestFarhand();
  const box = machine("box");
  expect(problem(() => machine("No"))).toMatch(/machine name/);
  expect(problem(() => box.set(untyped('{"presence": "asleep"}')))).toMatch(/presence/);
  expect(problem(() => box.set({ presence: "offline", latencyMs: -1 }))).toMatch(/latencyMs: is negative/);
  expect(problem(() => box.set(untyped('{"consentRequired": ["shell"]}')))).toMatch(/consentRequired/);
  expect(problem(() => box.set(untyped('{"offline": true}')))).toMatch(/offline/);
  expect(problem(() => setLink(untyped('"off"')))).toMatch(/neither up nor down/);
  await farhand.machine("box").ping();
});

test("wrong scripts are named where they are given", () => {
  const box = createTestFarhand().machine("box");
  expect(problem(() => box.onRun(untyped("1")))).toMatch(/neither a function/);
  expect(problem(() => box.onRun([], {}))).toMatch(/the match is empty/);
  expect(problem(() => box.onRun(untyped("1"), {}))).toMatch(/the match is neither/);
  expect(problem(() => box.onRun("x", untyped("1")))).toMatch(/expected object/);
  expect(problem(() => box.onRun("x", { exitCode: 1000 }))).toMatch(/exitCode/);
  expect(problem(() => box.onRun("x", { exitCode: 1, signal: "SIGKILL" }))).toMatch(/exclude each other/);
  expect(problem(() => box.onRun("x", untyped('{"code": 1}')))).toMatch(/code/);
});

test("wrong seeds are named where they are given", () => {
  const { files } = createTestFarhand().machine("box");
  expect(problem(() => files.set("", "x"))).toMatch(/is empty/);
  expect(problem(() => files.set("a", untyped("1")))).toMatch(/neither text nor bytes/);
  expect(problem(() => files.set("a", "x", { mode: 0o10000 }))).toMatch(/mode/);
  files.makeDir("d");
  expect(problem(() => files.set("d", "x"))).toMatch(/is a directory/);
});
