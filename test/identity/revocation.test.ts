import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { headers } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { revokeCredential, revokeMachine } from "../../control/authority/revoke.js";
import { createSessions } from "../../control/sessions.js";
import { AUTH_HEADER } from "../../proto/authentic.js";
import { ControlResponse } from "../../proto/gen/envelope.js";
import { AGENT_EXIT } from "../../proto/limits.js";
import { startAgentProcess } from "../support/agent.js";
import { faultOf } from "../support/fails.js";
import { joinMachine, machineFor, startJoined } from "../support/joined.js";
import { connectAs } from "../support/operator.js";
import { isAlive } from "../support/processes.js";
import { rawRequest } from "../support/raw.js";
import { until } from "../support/until.js";

const pidIn = (path: string): Promise<number> =>
  until(path, () => Number(readFileSync(path, "utf8")) || undefined);

test("a revoked machine stops within a second, ends what runs, and does not come back", async () => {
  const { bus, joined, agent, machine, credentials } = await startJoined();
  const running = machine.commands.run("echo $$ > pid; exec sleep 60");
  running.catch(() => undefined);
  const pid = await pidIn(join(joined.root, "pid"));
  const startedAt = performance.now();
  await revokeMachine(bus.authority, { workspace: "w1", machine: "m1" }, "test");
  await until("the command has gone", () => !isAlive(pid), 1_000);
  expect(performance.now() - startedAt).toBeLessThan(1_000);
  expect(await agent.exited).toBe(AGENT_EXIT.revoked);
  expect(agent.log.find(({ level }) => level === 60)?.msg).toContain("w1/m1, was revoked");
  expect(await faultOf(machineFor(bus, credentials).ping())).toMatchObject({ code: "agent_offline" });

  const later = startAgentProcess(["run", "--state", joined.stateDir, "--root", joined.root]);
  expect(await later.exited).toBe(AGENT_EXIT.revoked);
  expect(later.stderr()).toContain("revoked");
  expect(later.stderr()).toContain("join");
});

test("a machine that was off while it was revoked learns it before it serves", async () => {
  const { bus, joined, agent } = await startJoined();
  await agent.kill("SIGTERM");
  await revokeMachine(bus.authority, { workspace: "w1", machine: "m1" }, "test");
  const later = startAgentProcess(["run", "--state", joined.stateDir, "--root", joined.root]);
  const refused = until("it says that it is refused", () => later.log.find(({ level }) => level >= 40));
  await Promise.race([later.exited, refused]);
  expect(later.log.some(({ msg }) => msg === "serving")).toBe(false);
});

test("the name of a revoked machine can be joined again, and inherits nothing", async () => {
  const { bus, joined, machine } = await startJoined();
  await machine.under({ scope: "job", epoch: 9n }).files.write("mine", "old", { requestId: "reused" });
  await revokeMachine(bus.authority, { workspace: "w1", machine: "m1" }, "test");
  const again = await joinMachine(bus);
  await again.run();
  const seen = machineFor(bus, await bus.control());
  expect(again.stateDir).not.toBe(joined.stateDir);
  await seen.under({ scope: "job", epoch: 1n }).files.write("mine", "new", { requestId: "reused" });
  expect(readFileSync(join(again.root, "mine"), "utf8")).toBe("new");
});

test("a revoked credential is cut off the bus and its command ended within a second; others are left alone", async () => {
  const { bus, joined, machine } = await startJoined();
  const credentials = await bus.control({ name: "leaver" });
  const leaver = machineFor(bus, credentials);
  const running = leaver.commands.run("echo $$ > leaver.pid; exec sleep 60", { graceMs: 100 });
  running.catch(() => undefined);
  const pid = await pidIn(join(joined.root, "leaver.pid"));
  await machine.ping();
  const startedAt = performance.now();
  await revokeCredential(bus.authority, { workspace: "w1", name: "leaver" }, "test");
  await until("its command has gone", () => !isAlive(pid), 1_000);
  expect(performance.now() - startedAt).toBeLessThan(1_000);
  const fault = await until("it is refused", async () => {
    const refused = await faultOf(leaver.ping({ timeoutMs: 500 }));
    return refused.code === "unauthenticated" ? refused : undefined;
  });
  expect(fault.message).toContain("does not accept our credentials");
  expect(await machine.ping()).toBeGreaterThan(0);
});

test("a machine that was away learns of a revoked credential before it serves the next request", async () => {
  const { bus, joined, agent } = await startJoined();
  const credentials = await bus.control({ name: "leaver" });
  await agent.kill("SIGTERM");
  await revokeCredential(bus.authority, { workspace: "w1", name: "leaver" }, "test");
  // With the bus on the leaver's side, only the machine itself can refuse.
  const owner = await connectAs(bus.url, bus.busOwner());
  const subject = "agent.w1.m1.rpc";
  const reply = `${bus.busOwner().inboxPrefix}.leaver`;
  const answers: ControlResponse[] = [];
  owner.subscribe(reply, {
    callback: (_error, message) => void answers.push(ControlResponse.decode(message.data)),
  });
  const sessions = createSessions({ credentials, now: Date.now, skewMs: () => 0 });
  const op = { $case: "fsMkdir" as const, value: { path: "by-leaver", parents: false } };
  const knock = setInterval(() => {
    const payload = rawRequest({ op });
    const header = headers();
    header.set(
      AUTH_HEADER,
      sessions.prove({ workspace: "w1", machine: "m1" }, { subject, reply, payload }).proof,
    );
    owner.publish(subject, payload, { headers: header, reply });
  }, 5);
  await joined.run();
  const answer = await until("an answer", () => answers.find(({ requestId }) => requestId !== ""));
  clearInterval(knock);
  expect(answer.result).toMatchObject({ $case: "error", value: { code: "unauthenticated", ran: "no" } });
  expect(existsSync(join(joined.root, "by-leaver"))).toBe(false);
});

test("no secret is in arguments, environments or logs of what runs", async () => {
  const { bus, joined, agent, machine } = await startJoined();
  await machine.commands.run("true");
  const { seed } = JSON.parse(readFileSync(join(joined.stateDir, "identity.json"), "utf8"));
  const secrets = [seed, ...Object.values(bus.keys).map((key) => key.seed)];
  const seen = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => ["cmdline", "environ"].map((file) => `/proc/${pid}/${file}`))
    .map((path) => {
      try {
        return readFileSync(path, "latin1");
      } catch {
        return "";
      }
    });
  expect(seen.some((text) => text.includes("nats-server"))).toBe(true);
  const texts = [...seen, JSON.stringify(agent.log), agent.stderr()];
  for (const secret of secrets) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
});
