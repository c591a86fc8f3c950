import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

interface House {
  violations(file: string, text: string): string[];
}

const root = fileURLToPath(new URL("..", import.meta.url));
const { violations }: House = await import(`${root}scripts/house.mjs`);

describe("the house refuses", () => {
  test.each([
    ["control importing agent", "control/machine.ts", "../agent/call.js"],
    ["agent importing control", "agent/serve.ts", "../control/rpc.js"],
    ["proto importing agent", "proto/faults.ts", "../agent/call.js"],
    ["proto importing control", "proto/subjects.ts", "../control/rpc.js"],
    ["an op importing wire", "agent/ops/ping.ts", "../wire/link.js"],
    ["an op importing a step", "agent/ops/ping.ts", "../steps/fence.js"],
    ["an op importing the store", "agent/ops/ping.ts", "../store/journal.js"],
    ["a step importing an op", "agent/steps/fence.ts", "../ops/table.js"],
    ["a step importing wire", "agent/steps/fence.ts", "../wire/link.js"],
    ["a step importing the host", "agent/steps/fence.ts", "../host/files/files.js"],
    ["the store importing a step", "agent/store/epochs.ts", "../steps/fence.js"],
    ["the store importing files", "agent/store/epochs.ts", "../host/files/files.js"],
    ["the host importing generated protobuf code", "agent/host/files/read.ts", "../../../proto/gen/files.js"],
    ["the host importing subjects", "agent/host/files/read.ts", "../../../proto/subjects.js"],
    ["the host importing an op", "agent/host/files/read.ts", "../../ops/op.js"],
    ["the agent's wire importing a step", "agent/wire/link.ts", "../steps/fence.js"],
    ["serve importing an op", "agent/serve.ts", "./ops/table.js"],
    ["serve importing wire", "agent/serve.ts", "./wire/link.js"],
    ["control's wire importing the client", "control/wire/nats-rpc.ts", "../farhand.js"],
  ])("%s", (_what, file, name) => {
    const target = new URL(name, `file:///${file}`).pathname.slice(1).replace(/\.js$/, ".ts");
    const says = [`${file} imports ${target}, which its place does not allow`];
    expect(violations(file, `import { x } from "${name}";`)).toEqual(says);
    expect(violations(file, `import type { X } from "${name}";`)).toEqual(says);
    expect(violations(file, `import {\n  a,\n  type B,\n} from "${name}";`)).toEqual(says);
    expect(violations(file, `import "${name}";`)).toEqual(says);
    expect(violations(file, `export * from "${name}";`)).toEqual(says);
    expect(violations(file, `export { x } from "${name}";`)).toEqual(says);
    expect(violations(file, `const { x } = await import("${name}");`)).toEqual(says);
  });

  test.each([
    "proto/subjects.ts",
    "agent/agent.ts",
    "agent/main.ts",
    "agent/serve.ts",
    "agent/ops/ping.ts",
    "agent/steps/fence.ts",
    "agent/store/state.ts",
    "agent/host/files/read.ts",
    "control/farhand.ts",
    "control/cli/main.ts",
    "control/plane/up.ts",
  ])("NATS in %s", (file) => {
    const says = [`${file} imports @nats-io/transport-node: only wire/ may import NATS`];
    expect(violations(file, 'import { connect } from "@nats-io/transport-node";')).toEqual(says);
    expect(violations(file, 'const nats = await import("@nats-io/transport-node");')).toEqual(says);
  });

  test("each of several wrong imports of one file", () => {
    const text =
      'import { a } from "../wire/link.js";\nimport { b } from "@nats-io/nkeys";\nimport { c } from "../call.js";';
    expect(violations("agent/ops/ping.ts", text)).toHaveLength(2);
  });
});

describe("the house allows", () => {
  test.each([
    ["agent/wire/link.ts", "@nats-io/transport-node"],
    ["control/wire/nats-rpc.ts", "@nats-io/transport-node"],
    ["control/wire/nats-rpc.ts", "../rpc.js"],
    ["agent/ops/ping.ts", "../host/files/files.js"],
    ["agent/ops/ping.ts", "../../proto/gen/files.js"],
    ["agent/steps/fence.ts", "../store/epochs.js"],
    ["agent/store/state.ts", "../host/processes/identity.js"],
    ["agent/host/files/read.ts", "../../../proto/farhand-error.js"],
    ["agent/agent.ts", "./wire/link.js"],
    ["control/cli/main.ts", "../index.js"],
    ["control/files.ts", "zod"],
    ["agent/host/files/read.ts", "node:fs"],
  ])("%s to import %s", (file, name) => {
    expect(violations(file, `import { x } from "${name}";`)).toEqual([]);
  });
});

test("the source keeps the rules of the house", () => {
  const files = ["proto", "agent", "control"].flatMap((directory) =>
    readdirSync(`${root}${directory}`, { recursive: true, encoding: "utf8" })
      .map((name) => `${directory}/${name}`)
      .filter((name) => name.endsWith(".ts") && !name.includes("/gen/")),
  );
  expect(files.length).toBeGreaterThan(50);
  expect(files.flatMap((file) => violations(file, readFileSync(`${root}${file}`, "utf8")))).toEqual([]);
});
