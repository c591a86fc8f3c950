import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTestFarhand } from "../../../control/testing/index.js";
import { fenceDecision } from "../../../control/testing/fence.js";
import { fenceDecision as agentDecision } from "../../../agent/store/epochs.js";
import { OPS } from "../../../agent/ops/table.js";
import { OP_ROWS } from "../../../control/testing/op-rows.js";

const start = () => {
  const { farhand, machine } = createTestFarhand();
  const played = machine("box");
  let runs = 0;
  played.onRun("count", async () => {
    await sleep(10);
    return { stdout: String(++runs) };
  });
  return { played, box: farhand.machine("box") };
};

test("every request is kept with its arguments, lease and outcome", async () => {
  const { played, box } = start();
  await box.under({ scope: "job-7", epoch: 3n }).files.write("a", "x", { requestId: "w-1" });
  await box.files.read("b").catch(() => undefined);
  expect(played.requests).toMatchObject([
    {
      op: "fsWrite",
      args: { path: "a", data: new TextEncoder().encode("x"), createParents: false },
      requestId: "w-1",
      scope: "job-7",
      epoch: 3n,
      outcome: "ok",
    },
    { op: "fsRead", args: { path: "b", offset: 0n }, scope: "", epoch: 0n, outcome: "not_found" },
  ]);
});

test("a request under way is pending", async () => {
  const { played, box } = start();
  const run = box.commands.run("count");
  await expect.poll(() => played.requests.length).toBe(1);
  expect(played.requests[0]?.outcome).toBe("pending");
  await run;
  expect(played.requests[0]?.outcome).toBe("ok");
});

test("a request sent twice at once runs once", async () => {
  const { box } = start();
  const twice = [1, 2].map(() => box.commands.run("count", { requestId: "r-1" }));
  expect((await Promise.all(twice)).map(({ stdout }) => stdout)).toEqual(["1", "1"]);
});

test("a request sent again later is answered with what became of it, a failure too", async () => {
  const { played, box } = start();
  await box.commands.run("count", { requestId: "r-1" });
  expect((await box.commands.run("count", { requestId: "r-1" })).stdout).toBe("1");
  const remove = () => box.files.remove("a", { requestId: "r-2" });
  await expect(remove()).rejects.toMatchObject({ code: "not_found" });
  played.files.set("a", "x");
  await expect(remove()).rejects.toMatchObject({ code: "not_found" });
  expect(played.files.get("a")).toBe("x");
});

test("a request id that was used for another request is a conflict", async () => {
  const { played, box } = start();
  await box.commands.run("count", { requestId: "r-1" });
  await expect(box.files.write("a", "x", { requestId: "r-1" })).rejects.toMatchObject({
    code: "conflict",
    detail: { requestId: "r-1" },
  });
  expect(played.files.get("a")).toBeUndefined();
});

test("a lease that has moved on fences the previous holder", async () => {
  const { played, box } = start();
  const at = (scope: string, epoch: bigint) => box.under({ scope, epoch }).files;
  await at("job", 2n).write("a", "second");
  await expect(at("job", 1n).write("a", "first")).rejects.toMatchObject({
    code: "fenced",
    detail: { scope: "job", held: "2", epoch: "1" },
  });
  await expect(at("job", 0n).write("a", "none")).rejects.toMatchObject({ code: "fenced" });
  expect(await at("job", 0n).read("a")).toBe("second");
  await at("other", 1n).write("b", "other");
  expect(played.files.get("a")).toBe("second");
});

test("the fence decides as the agent's does", () => {
  const outcome = (decide: () => unknown) => {
    try {
      return decide();
    } catch (error) {
      return error;
    }
  };
  const cases = [undefined, 1n, 5n].flatMap((held) =>
    [0n, 1n, 4n, 5n, 6n].flatMap((epoch) =>
      ["", "job"].flatMap((scope) =>
        [true, false].map((mutates) => ({ held, claim: { scope, epoch, mutates } })),
      ),
    ),
  );
  for (const { held, claim } of cases) {
    const expected = outcome(() => (agentDecision(held, claim) === "advance" ? claim.epoch : held));
    expect(outcome(() => fenceDecision(held, claim))).toEqual(expected);
  }
});

test("the ops that are played change something where the agent's do", () => {
  const names = Object.keys(OPS).filter((name): name is keyof typeof OPS => name in OP_ROWS);
  expect(names.length).toBe(Object.keys(OP_ROWS).length);
  for (const name of names) expect([name, OP_ROWS[name]?.mutates]).toEqual([name, OPS[name].mutates]);
});
