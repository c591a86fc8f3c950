import { expect, test } from "vitest";
import { startPair } from "../support/agent.js";

test("a command's output, error output and exit code come back", async () => {
  const { machine } = await startPair();
  const result = await machine.commands.run("echo out; echo err >&2; exit 3");
  expect(result).toMatchObject({
    stdout: "out\n",
    stderr: "err\n",
    exitCode: 3,
    signal: null,
    reason: "exited",
  });
});

test("a request sent twice runs the command once", async () => {
  const { machine } = await startPair();
  const twice = [1, 2].map(() => machine.commands.run("date +%N", { requestId: "r-1" }));
  const [first, second] = await Promise.all(twice);
  expect(second?.stdout).toBe(first?.stdout);
});
