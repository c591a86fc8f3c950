import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { AGENT_EXIT } from "../../proto/limits.js";
import { serving, spawnAgent, startPair } from "../support/agent.js";
import { faultOf } from "../support/fails.js";
import { isAlive, pause } from "../support/processes.js";
import { rawConnection, rawRequest } from "../support/raw.js";
import { temporaryDirectory } from "../support/temporary.js";
import { until } from "../support/until.js";

test("a command whose agent was killed in the middle is indeterminate, does not run again and is not left behind", async () => {
  const { agent, machine, root, restartAgent } = await startPair();
  const counter = join(root, "count");
  const script = `echo $$ >> ${counter}; sleep 60`;
  const lost = machine.commands.run(script, { requestId: "killed", timeoutMs: 1_000 });
  const pid = await until("the command has begun", () => Number(readFileSync(counter, "utf8")) || undefined);
  await agent.kill("SIGKILL");
  expect(await faultOf(lost)).toMatchObject({ code: "agent_reconnecting", ran: "maybe" });
  expect(isAlive(pid)).toBe(true);

  await restartAgent();
  expect(isAlive(pid)).toBe(false);
  const again = await faultOf(machine.commands.run(script, { requestId: "killed", timeoutMs: 1_000 }));
  expect(again).toMatchObject({ code: "indeterminate", ran: "maybe", retryable: false });
  expect(readFileSync(counter, "utf8")).toBe(`${pid}\n`);
});

test("a request sent again after the agent was killed and started again is answered from the journal", async () => {
  const { agent, machine, root, restartAgent } = await startPair();
  const first = await machine.commands.run("echo x >> count; date +%N", { requestId: "again" });
  await agent.kill("SIGKILL");
  await restartAgent();
  const second = await machine.commands.run("echo x >> count; date +%N", { requestId: "again" });
  expect(second).toEqual(first);
  expect(readFileSync(join(root, "count"), "utf8")).toBe("x\n");
});

test("a captured request sent again at once, after a restart and after its deadline runs no second time", async () => {
  const { server, agent, root, restartAgent } = await startPair();
  const nc = await rawConnection(server.url);
  const deadline = Date.now() + 2_000;
  const payload = rawRequest({
    deadlineMs: BigInt(deadline),
    op: {
      $case: "fsWrite",
      value: {
        path: "log",
        data: Buffer.from("x"),
        append: true,
        ifMatch: "",
        ifNoneMatch: false,
        createParents: false,
      },
    },
  });
  const send = (): Promise<unknown> => nc.request("agent.w1.m1.rpc", payload, { timeout: 3_000 });
  await send();
  await Promise.all([send(), send(), send()]);
  await agent.kill("SIGKILL");
  await restartAgent();
  await send();
  await until("the deadline has passed", () => Date.now() > deadline);
  await send();
  expect(readFileSync(join(root, "log"), "utf8")).toBe("x");
});

test("a request that waited while the machine slept past its deadline does not run", async () => {
  const { agent, machine, root } = await startPair();
  await machine.ping();
  await pause(agent.pid);
  const late = await faultOf(machine.files.write("late", "x", { timeoutMs: 500 }));
  expect(late).toMatchObject({ code: "agent_reconnecting", ran: "maybe" });
  agent.signal("SIGCONT");
  const woken = performance.now();
  await until("the machine answers", () => machine.ping().catch(() => undefined), 5_000);
  expect(performance.now() - woken).toBeLessThan(5_000);
  await machine.files.write("after", "x");
  expect(existsSync(join(root, "late"))).toBe(false);
});

test("a stale epoch is refused, also after the agent was killed and started again", async () => {
  const { agent, machine, restartAgent } = await startPair();
  const [old, next] = [
    machine.under({ scope: "job", epoch: 7n }),
    machine.under({ scope: "job", epoch: 8n }),
  ];
  await old.files.write("a", "old");
  await next.files.write("a", "next");
  expect(await faultOf(old.files.write("a", "stale"))).toMatchObject({ code: "fenced", ran: "no" });
  expect(await faultOf(old.files.read("a"))).toMatchObject({ code: "fenced" });
  await agent.kill("SIGKILL");
  await restartAgent();
  expect(await faultOf(old.files.write("a", "stale"))).toMatchObject({
    code: "fenced",
    detail: { held: "8", epoch: "7" },
  });
  expect(await faultOf(machine.under({ scope: "job", epoch: 0n }).files.write("a", "none"))).toMatchObject({
    code: "fenced",
  });
  expect(await machine.under({ scope: "job", epoch: 0n }).files.read("a")).toBe("next");
  expect(await machine.under({ scope: "other", epoch: 1n }).files.read("a")).toBe("next");
});

test("SIGTERM refuses new work, finishes what runs and says goodbye", async () => {
  const { agent, machine, root } = await startPair();
  const running = machine.commands.run("touch begun; sleep 1; echo finished");
  await until("the command has begun", () => existsSync(join(root, "begun")));
  agent.signal("SIGTERM");
  const refused = await until("a refusal", async () => {
    const fault = await faultOf(machine.files.write("new", "x"));
    return fault.code === "draining" ? fault : undefined;
  });
  expect(refused).toMatchObject({ ran: "no", retryable: true });
  expect((await running).stdout).toBe("finished\n");
  expect(await agent.exited).toBe(AGENT_EXIT.ok);
});

test("what does not finish within the grace time is ended with the agent", async () => {
  const { agent, machine, root } = await startPair({ args: ["--drain-grace-ms", "200"] });
  const running = machine.commands.run("echo $$ > pid; sleep 60", { graceMs: 100 });
  const pid = await until(
    "the command has begun",
    () => Number(readFileSync(join(root, "pid"), "utf8")) || undefined,
  );
  agent.signal("SIGTERM");
  expect((await running).reason).toBe("cancelled");
  expect(await agent.exited).toBe(AGENT_EXIT.ok);
  expect(isAlive(pid)).toBe(false);
});

test("a second agent on the same state directory says so and leaves the first alone", async () => {
  const { server, agent, machine, root, stateDir } = await startPair();
  const second = spawnAgent({ url: server.url, root, stateDir });
  expect(await second.exited).toBe(AGENT_EXIT.alreadyRunning);
  expect(second.stderr()).toContain(`pid ${agent.pid}`);
  expect(second.stderr()).not.toMatch(/^\s+at /m);
  expect(await machine.ping()).toBeGreaterThan(0);
});

test("of two machines with one identity the newest serves within 2 s, and the other stops and says so", async () => {
  const { server, agent, machine, root, stateDir } = await startPair();
  const clone = join(temporaryDirectory(), "state");
  cpSync(stateDir, clone, { recursive: true });
  const startedAt = performance.now();
  const second = spawnAgent({ url: server.url, root, stateDir: clone });
  const { instanceId } = await serving(second);
  expect(await agent.exited).toBe(AGENT_EXIT.superseded);
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  const word = agent.log.find(({ level }) => level === 60);
  expect(word).toMatchObject({
    by: instanceId,
    msg: expect.stringContaining("has taken the identity w1/m1"),
  });
  await machine.commands.run("echo x >> count");
  expect(readFileSync(join(root, "count"), "utf8")).toBe("x\n");
  expect(second.log.some(({ level }) => level === 60)).toBe(false);
});

test("a machine that was away while its clone started gives way when it comes back", async () => {
  const { server, agent, root, stateDir } = await startPair();
  const clone = join(temporaryDirectory(), "state");
  cpSync(stateDir, clone, { recursive: true });
  await pause(agent.pid);
  const second = spawnAgent({ url: server.url, root, stateDir: clone });
  await serving(second);
  agent.signal("SIGCONT");
  expect(await agent.exited).toBe(AGENT_EXIT.superseded);
});
