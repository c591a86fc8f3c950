import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { revokeCredential, revokeMachine } from "../../../control/authority/revoke.js";
import { readCertificate } from "../../../proto/certificate.js";
import { SignedTrustList, TrustList } from "../../../proto/gen/identity.js";
import { trustText } from "../../../proto/identity.js";
import { AGENT_EXIT } from "../../../proto/limits.js";
import { createSigningKey, type SigningKey } from "../../../proto/nkey.js";
import { type AgentProcess, type LogLine, serving } from "../../support/agent.js";
import { faultOf } from "../../support/fails.js";
import { connectAs, type OperatorBus, startOperatorBus } from "../../support/operator.js";
import { isAlive } from "../../support/processes.js";
import { until } from "../../support/until.js";
import { joinMachine, newPlace } from "./joined.js";

const FATAL = 60;

const said = (agent: AgentProcess, text: string): Promise<LogLine> =>
  until(`the agent says: ${text}`, () => agent.log.find(({ msg }) => msg.includes(text)));

const signedList = (signer: SigningKey, fields: Partial<TrustList>): Uint8Array => {
  const list = TrustList.encode(TrustList.fromPartial({ workspace: "w1", ...fields })).finish();
  return SignedTrustList.encode({ list, signature: signer.sign(trustText(list)) }).finish();
};

/** What the bus holds as the trust list, read and written by whoever owns the bus. */
const trustOnBus = (bus: OperatorBus) => {
  const { trust } = bus.authority.records;
  return {
    read: async (): Promise<Uint8Array> => (await trust.get("w1")).value ?? new Uint8Array(),
    async write(signed: Uint8Array): Promise<void> {
      await trust.put("w1", signed, (await trust.get("w1")).revision);
    },
  };
};

test("the JWT is renewed at half of its life, and a command that runs across the change is answered", async () => {
  const bus = await startOperatorBus({ agentJwtMs: 12_000 });
  const { place, agent, machine } = await joinMachine(bus);
  const before = place.identity();
  const running = machine.commands.run("touch begun; sleep 7; echo finished", { timeoutMs: 15_000 });
  await until("the command has begun", () => existsSync(join(place.root, "begun")));
  await said(agent, "renewed this machine's credential");
  const { expiresMs } = readCertificate(before.jwt);
  expect(Date.now()).toBeLessThan(expiresMs - 1_000);
  expect(place.identity()).toMatchObject({ seed: before.seed, joinedMs: before.joinedMs });
  expect(place.identity().jwt).not.toBe(before.jwt);
  expect((await machine.commands.run("echo new")).stdout).toBe("new\n");
  expect((await running).stdout).toBe("finished\n");
  await until("the first JWT has expired", () => Date.now() > expiresMs + 500);
  expect(await machine.ping()).toBeGreaterThan(0);
  expect(agent.log.filter(({ msg }) => msg.startsWith("lost the bus"))).toEqual([]);
});

test("a machine whose JWT expired while it was off comes back by itself", async () => {
  const bus = await startOperatorBus({ agentJwtMs: 1_500 });
  const place = newPlace();
  const joining = place.join(["--name", "m1", "--no-run", "--token-file", "-"], await bus.token());
  expect(await joining.exited).toBe(AGENT_EXIT.ok);
  const { jwt } = place.identity();
  await until("the JWT has expired", () => Date.now() > readCertificate(jwt).expiresMs + 100);
  await serving(place.run());
  expect(place.identity().jwt).not.toBe(jwt);
});

test("a machine that is cut off because its JWT expired goes on with a new one", async () => {
  const bus = await startOperatorBus({ agentJwtMs: 3_000 });
  const { agent, machine } = await joinMachine(bus);
  agent.signal("SIGSTOP");
  await sleep(4_000);
  agent.signal("SIGCONT");
  expect(await until("the machine answers", () => machine.ping().catch(() => undefined))).toBeGreaterThan(0);
});

test("a revoked machine ends what runs, says so, exits for good, and can be joined anew", async () => {
  const bus = await startOperatorBus();
  const { place, agent, machine } = await joinMachine(bus);
  // Its answer may not get out before the connection is cut.
  void machine.commands.run("echo $$ > pid; exec sleep 60").catch(() => undefined);
  const pid = await until(
    "the command has begun",
    () => Number(readFileSync(join(place.root, "pid"), "utf8")) || undefined,
  );
  const at = performance.now();
  await revokeMachine(bus.authority, { workspace: "w1", machine: "m1" }, "test");
  expect(await agent.exited).toBe(AGENT_EXIT.revoked);
  expect(performance.now() - at).toBeLessThan(5_000);
  expect(isAlive(pid)).toBe(false);
  expect(agent.log.find(({ level }) => level === FATAL)?.msg).toContain("w1/m1, was revoked");
  expect(place.identity().revokedMs).toBeGreaterThan(0);

  const later = place.run();
  expect(await later.exited).toBe(AGENT_EXIT.revoked);
  expect(later.stderr()).toMatch(/w1\/m1, was revoked[^]*join --force/);

  await serving(place.join(["--name", "m1", "--force", "--token-file", "-"], await bus.token()));
  expect(place.identity().revokedMs).toBeUndefined();
});

test("a machine that was revoked while it was off is refused by the bus, says so once and does not hammer it", async () => {
  const bus = await startOperatorBus();
  const { place, agent } = await joinMachine(bus);
  await agent.kill("SIGTERM");
  await revokeMachine(bus.authority, { workspace: "w1", machine: "m1" }, "test");
  const later = place.run(["--log-level", "debug"]);
  await said(later, "the bus refuses this machine's credentials");
  await sleep(5_000);
  const tries = later.log.filter(({ msg }) => msg.startsWith("could not renew"));
  expect(tries.length).toBeLessThanOrEqual(3);
  expect(later.log.filter(({ msg }) => msg.startsWith("the bus refuses"))).toHaveLength(1);
  expect(later.log.some(({ msg }) => msg === "serving")).toBe(false);
});

test("a machine that was off learns of a revoked credential before it serves", async () => {
  const bus = await startOperatorBus();
  const { place, agent, machine, credentials } = await joinMachine(bus);
  expect(await machine.ping()).toBeGreaterThan(0);
  await agent.kill("SIGTERM");
  const { write, read } = trustOnBus(bus);
  const old = await read();
  await revokeCredential(bus.authority, { publicKey: credentials.key.publicKey }, "test");
  const newest = await read();
  const second = place.run();
  await serving(second);
  await said(second, "took in a new trust list");
  await second.kill("SIGTERM");

  // Whoever owns the bus shows an older list, in which the credential is still good.
  await write(old);
  const third = place.run();
  await serving(third);
  await said(third, "older than the last one");
  await third.kill("SIGTERM");
  await write(newest);
});

test("a trust list that the authority did not sign is refused, and nothing is served until there is a good one", async () => {
  const bus = await startOperatorBus();
  const { place, agent, machine } = await joinMachine(bus);
  const forged = signedList(createSigningKey("account"), { version: 99n, machines: { m1: "anything" } });
  const elsewhere = signedList(bus.keys.controlSigner, { version: 99n, workspace: "w2" });
  const owner = await connectAs(bus.url, bus.busOwner());
  for (const bad of [forged, elsewhere, Buffer.from("nonsense")]) owner.publish("agent.w1.all.trust", bad);
  await owner.flush();
  await until(
    "all were refused",
    () => agent.log.filter(({ msg }) => msg === "a message could not be handled").length === 3,
  );
  expect(await machine.ping()).toBeGreaterThan(0);
  await agent.kill("SIGTERM");

  const { write, read } = trustOnBus(bus);
  const good = await read();
  await write(forged);
  const later = place.run();
  await said(later, "could not get the trust list");
  await sleep(300);
  expect(later.log.some(({ msg }) => msg === "serving")).toBe(false);
  await write(good);
  await serving(later);
});

test("after a reconnect requests wait for the trust list", async () => {
  const bus = await startOperatorBus();
  const { place, agent, machine } = await joinMachine(bus);
  const { write, read } = trustOnBus(bus);
  const good = await read();
  await write(Buffer.from("nonsense"));
  await bus.server.kill();
  await bus.server.start();
  await said(agent, "back on the bus");
  expect((await faultOf(machine.files.write("early", "x", { timeoutMs: 1_000 }))).ran).not.toBe("yes");
  await until("the bus takes writes", async () => {
    await write(good);
    return true;
  });
  await until("the machine answers", () => machine.ping().catch(() => undefined));
  expect(existsSync(join(place.root, "early"))).toBe(false);
});
