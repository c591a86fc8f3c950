import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { createFiles } from "../../../agent/host/files/files.js";
import { createProcesses } from "../../../agent/host/processes/processes.js";
import { act, OPS } from "../../../agent/ops/table.js";
import { createServe } from "../../../agent/serve.js";
import type { RunOptions } from "../../../control/commands.js";
import { createFarhand } from "../../../control/farhand.js";
import type { Machine } from "../../../control/machine.js";
import { createTestFarhand } from "../../../control/testing/index.js";
import { FarhandError } from "../../../proto/farhand-error.js";
import { temporaryDirectory } from "../../support/temporary.js";

const MAX_PAYLOAD = 16_384;

const CALLER = { name: "test", role: "operator", publicKey: "" } as const;

/** The agent's own ops on real files, called without a bus. */
const realMachine = (root: string): Machine => {
  const instanceId = randomUUID();
  const serve = createServe({
    agent: { instanceId, version: "test" },
    steps: [],
    act: act({
      files: createFiles({ root }),
      processes: createProcesses({ root, stateDir: root, instanceId }),
      about: { workspace: "default", machine: "box", startedMs: Date.now() },
      cancel: () => false,
    }),
    opRow: (name) => OPS[name],
    now: Date.now,
    onDefect: () => undefined,
  });
  const exchange = async ({ payload }: { payload: Uint8Array }) => ({
    kind: "reply" as const,
    payload: await serve({ data: payload, maxPayload: MAX_PAYLOAD, scatter: false, caller: CALLER }),
  });
  return createFarhand({ rpc: { exchange }, workspace: "default" }).machine("box");
};

/** Long enough on both outputs that one message does not hold them. */
const LONG = Array.from({ length: 5_000 }, (_, at) => String(at)).join(",");

const testMachine = (root: string): Machine => {
  const { farhand, machine } = createTestFarhand({ root, maxPayloadBytes: MAX_PAYLOAD });
  machine("box").onRun("cat long; cat long >&2; exit 3", { stdout: LONG, stderr: LONG, exitCode: 3 });
  return farhand.machine("box");
};

/** What differs from one file system to another. */
const VOLATILE = new Set(["modified", "changed", "uid", "gid", "durationMs", "cpuMs", "peakMemoryBytes"]);

const comparable = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (name, field: unknown) => {
      if (VOLATILE.has(name)) return undefined;
      if (typeof field === "object" && field !== null && "kind" in field && field.kind === "directory")
        return { ...field, size: 0 };
      return field;
    }) ?? "null",
  );

/** How a fault is worded is free. */
const outcomeOf = async (step: Promise<unknown>): Promise<unknown> => {
  try {
    return comparable(await step);
  } catch (error) {
    if (!(error instanceof FarhandError)) throw error;
    const { code, ran, detail } = error;
    return { code, ran, detail };
  }
};

const runLong =
  (options: RunOptions): Step =>
  async ({ files, commands }) => {
    for (let at = 0; at < LONG.length; at += 10_000)
      await files.write("long", LONG.slice(at, at + 10_000), { append: at > 0 });
    return commands.run("cat long; cat long >&2; exit 3", options);
  };

type Step = (machine: Machine) => Promise<unknown>;

const TEN = "0123456789";
const OTHER = "0".repeat(64);

const seed: Step[] = [
  ({ files }) => files.write("file", TEN, { mode: 0o640 }),
  ({ files }) => files.makeDir("dir", { mode: 0o750 }),
  ({ files }) => files.write("dir/inner", "inner", { mode: 0o600 }),
  ({ files }) => files.makeDir("empty", { mode: 0o700 }),
];

const SCENARIOS: Readonly<Record<string, readonly Step[]>> = {
  stat: [
    ({ files }) => files.stat("file", { digest: true }),
    ({ files }) => files.stat("dir"),
    ({ files }) => files.stat("dir", { digest: true }),
    ({ files }) => files.stat("none"),
    ({ files }) => files.stat("file/below"),
    ({ files }) => files.stat("file", { follow: false, digest: true }),
    ({ files }) => files.stat("n".repeat(300)),
    ({ files }) => files.stat("a/".repeat(3000)),
    ({ files }) => files.stat("nul\0"),
    ({ files }) => files.exists("dir/../file"),
    ({ files }) => files.exists("none"),
  ],
  read: [
    ({ files }) => files.read("file"),
    ({ files }) => files.read("file", { offset: 4, length: 3 }),
    ({ files }) => files.read("file", { offset: 9, length: 5 }),
    ({ files }) => files.read("file", { offset: 50 }),
    ({ files }) => files.read("file", { length: 0 }),
    ({ files }) => files.read("dir"),
    ({ files }) => files.read("none"),
    ({ files }) => files.read("file/below"),
  ],
  write: [
    ({ files }) => files.write("file", "new", { mode: 0o777 }),
    ({ files }) => files.stat("file"),
    ({ files }) => files.write("file", "more", { append: true }),
    ({ files }) => files.write("appended", "x", { append: true, mode: 0o600 }),
    ({ files }) => files.stat("appended"),
    ({ files }) => files.write("file", "x", { ifNoneMatch: true }),
    ({ files }) => files.write("fresh", "x", { ifNoneMatch: true, mode: 0o604 }),
    ({ files }) => files.stat("fresh"),
    ({ files }) => files.write("file", "x", { ifMatch: OTHER }),
    ({ files }) => files.write("none", "x", { ifMatch: OTHER }),
    ({ files }) => files.write("file", "x", { ifMatch: "short" }),
    ({ files }) => files.write("file", "x", { ifMatch: OTHER, ifNoneMatch: true }),
    async ({ files }) => {
      const { sha256 } = await files.stat("file", { digest: true });
      return files.write("file", "matched", { ifMatch: sha256?.toUpperCase() });
    },
    ({ files }) => files.read("file"),
    ({ files }) => files.write("dir", "x"),
    ({ files }) => files.write("no/parent", "x"),
    ({ files }) => files.write("some/new/parent", "x", { createParents: true }),
    ({ files }) => files.write("file/below", "x"),
    ({ files }) => files.write("file/below", "x", { createParents: true }),
    ({ files }) => files.write("file/far/below", "x", { createParents: true }),
    ({ files }) => files.write("n".repeat(300), "x"),
  ],
  list: [
    ({ files }) => files.list("dir"),
    ({ files }) => files.list("."),
    ({ files }) => files.list(".", { limit: 2 }),
    ({ files }) => files.list(".", { limit: 2, cursor: "empty" }),
    ({ files }) => files.list(".", { limit: 3 }),
    ({ files }) => files.list("empty"),
    ({ files }) => files.list("file"),
    ({ files }) => files.list("none"),
  ],
  mkdir: [
    ({ files }) => files.makeDir("made", { mode: 0o700 }),
    ({ files }) => files.stat("made"),
    ({ files }) => files.makeDir("wide", { mode: 0o777 }),
    ({ files }) => files.stat("wide"),
    ({ files }) => files.makeDir("deep/down", { parents: true, mode: 0o707 }),
    ({ files }) => files.stat("deep/down"),
    ({ files }) => files.makeDir("made"),
    ({ files }) => files.makeDir("made", { parents: true }),
    ({ files }) => files.makeDir("x/y/z"),
    ({ files }) => files.makeDir("x/y/z", { parents: true }),
    ({ files }) => files.list("x/y/z"),
    ({ files }) => files.makeDir("file"),
    ({ files }) => files.makeDir("file", { parents: true }),
    ({ files }) => files.makeDir("file/below"),
    ({ files }) => files.makeDir("file/below", { parents: true }),
  ],
  move: [
    ({ files }) => files.move("none", "other"),
    ({ files }) => files.move("none", "no/parent"),
    ({ files }) => files.move("file", "no/parent"),
    ({ files }) => files.move("file", "dir/inner"),
    ({ files }) => files.move("file", "dir", { overwrite: true }),
    ({ files }) => files.move("dir", "file", { overwrite: true }),
    ({ files }) => files.move("file", "file/below"),
    ({ files }) => files.move("file", "file/below", { overwrite: true }),
    ({ files }) => files.move("none", "file/below", { overwrite: true }),
    ({ files }) => files.move("file", "file"),
    ({ files }) => files.move("file", "file", { overwrite: true }),
    ({ files }) => files.move("dir", "dir/below"),
    ({ files }) => files.move("empty", "dir", { overwrite: true }),
    ({ files }) => files.move("dir", "empty", { overwrite: true }),
    ({ files }) => files.list("empty"),
    ({ files }) => files.move("file", "empty/inner", { overwrite: true }),
    ({ files }) => files.read("empty/inner"),
    ({ files }) => files.list("."),
  ],
  remove: [
    ({ files }) => files.remove("none"),
    ({ files }) => files.remove("none", { missingOk: true }),
    ({ files }) => files.remove("file/below", { missingOk: true }),
    ({ files }) => files.remove("dir"),
    ({ files }) => files.remove("empty"),
    ({ files }) => files.remove("dir", { recursive: true }),
    ({ files }) => files.remove("file"),
    ({ files }) => files.list("."),
  ],
  chmod: [
    ({ files }) => files.chmod("file", 0o4711),
    ({ files }) => files.chmod("dir", 0o700),
    ({ files }) => files.stat("file"),
    ({ files }) => files.chmod("none", 0o600),
    ({ files }) => files.chmod("file/below", 0o600),
  ],
  "the output of a run": [
    runLong({}),
    runLong({ keep: "tail" }),
    runLong({ keep: "head_tail" }),
    runLong({ keep: "head", maxOutputBytes: 7 }),
    runLong({ keep: "tail", maxOutputBytes: 7 }),
    runLong({ keep: "head_tail", maxOutputBytes: 7 }),
    runLong({ keep: "head_tail", maxOutputBytes: 8_000 }),
    runLong({ maxOutputBytes: 0 }),
  ],
  "run without a script": [
    ({ commands }) => commands.run(["ls"], { cwd: "none" }),
    ({ commands }) => commands.run(["no-such-command"], { cwd: "file" }),
    ({ commands }) => commands.run(["a\0b"]),
    ({ commands }) => commands.run("true", { env: { "A=B": "" } }),
  ],
};

test.each(Object.entries(SCENARIOS))("%s is answered as the agent answers it", async (_name, steps) => {
  const root = temporaryDirectory();
  const [real, played] = [realMachine(root), testMachine(root)];
  for (const [at, step] of [...seed, ...steps].entries()) {
    const expected = await outcomeOf(step(real));
    expect([at, step.toString(), await outcomeOf(step(played))]).toEqual([at, step.toString(), expected]);
  }
});

test("a command that nobody scripted fails with the code and detail of one that is not installed", async () => {
  const root = temporaryDirectory();
  const [real, played] = await Promise.all(
    [realMachine(root), testMachine(root)].map((machine) =>
      outcomeOf(machine.commands.run(["no-such-command"])),
    ),
  );
  expect(played).toEqual(real);
});
