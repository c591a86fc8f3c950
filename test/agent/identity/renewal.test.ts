import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { publishTrust } from "../../../control/authority/trust.js";
import { readCertificate } from "../../../proto/certificate.js";
import { SignedTrustList, TrustList } from "../../../proto/gen/identity.js";
import { trustText } from "../../../proto/identity.js";
import { createSigningKey, type SigningKey } from "../../../proto/nkey.js";
import { subjects } from "../../../proto/subjects.js";
import { type AgentProcess, type LogLine, serving } from "../../support/agent.js";
import { connectAs, startOperatorBus } from "../../support/operator.js";
import { until } from "../../support/until.js";
import { joinMachine } from "./joined.js";

const linesOf = ({ log }: AgentProcess, text: string): LogLine[] =>
  log.filter(({ msg }) => msg.includes(text));

const renewals = (agent: AgentProcess): number => linesOf(agent, "renewed this machine's credential").length;

describe("a machine's JWT", () => {
  test("is renewed again and again while the machine serves, and what runs meanwhile is answered", async () => {
    const bus = await startOperatorBus({ agentJwtMs: 4_000 });
    const { place, agent, machine } = await joinMachine(bus);
    const startedMs = Date.now();
    const first = place.identity();
    // Outlives the connection that it came by: that one's JWT expires before the answer is there.
    const long = machine.commands.run("sleep 5; echo done", { timeoutMs: 15_000 });
    await until("a renewal", () => renewals(agent) >= 1);
    // Begins just after a swap and ends after the next one, while the connection it came by is still good.
    const across = machine.commands.run("sleep 2.6; echo across");
    const outputs: string[] = [];
    while (Date.now() < startedMs + 9_000)
      outputs.push((await machine.commands.run("sleep 0.1; echo x")).stdout);
    expect((await across).stdout).toBe("across\n");
    expect((await long).stdout).toBe("done\n");
    expect(new Set(outputs)).toEqual(new Set(["x\n"]));
    expect(renewals(agent)).toBeGreaterThanOrEqual(3);
    expect(Date.now()).toBeGreaterThan(readCertificate(first.jwt).expiresMs + 3_000);
    const { jwt, ...rest } = place.identity();
    expect(jwt).not.toBe(first.jwt);
    expect(rest).toMatchObject({ seed: first.seed, machine: first.machine, joinedMs: first.joinedMs });
    expect(linesOf(agent, "lost the bus")).toEqual([]);
    expect(agent.log.filter(({ level }) => level >= 40)).toEqual([]);
  });

  test("that expired while the machine was off is renewed by the machine itself", async () => {
    const bus = await startOperatorBus({ agentJwtMs: 1_500 });
    const { place, agent, machine } = await joinMachine(bus);
    await agent.kill("SIGTERM");
    const { jwt } = place.identity();
    const { expiresMs } = readCertificate(jwt);
    await until("it has expired", () => Date.now() > expiresMs);
    const later = place.run();
    await serving(later);
    expect((await machine.commands.run("echo back")).stdout).toBe("back\n");
    expect(readCertificate(place.identity().jwt).expiresMs).toBeGreaterThan(expiresMs);
    expect(linesOf(later, "the bus refuses")).toEqual([]);
  });
});

const signedList = (signer: SigningKey, fields: Partial<TrustList>): Uint8Array => {
  const list = TrustList.encode(TrustList.fromPartial({ workspace: "w1", ...fields })).finish();
  return SignedTrustList.encode({ list, signature: signer.sign(trustText(list)) }).finish();
};

const FOR_EVER_S = 2n ** 40n;

describe("a trust list that somebody with full rights on the bus publishes", () => {
  test.each([
    { what: "an older version", version: 1n, isGenuine: true, says: "older than the last one" },
    { what: "a bad signature", version: 99n, isGenuine: false, says: "a message could not be handled" },
  ])("with $what changes nothing, and is logged", async ({ version, isGenuine, says }) => {
    const bus = await startOperatorBus();
    const { place, agent, machine, credentials } = await joinMachine(bus);
    await publishTrust(bus.authority, "w1");
    await until("the second list is there", () =>
      linesOf(agent, "took in a new trust list").find((line) => line["version"] === "2"),
    );
    await machine.commands.run("mkfifo go");
    const running = machine.commands.run("touch begun; cat go");
    await until("a command runs", () => existsSync(join(place.root, "begun")));
    const signer = isGenuine ? bus.keys.controlSigner : createSigningKey("account");
    const owner = await connectAs(bus.url, bus.busOwner());
    const revoked = { [credentials.key.publicKey]: FOR_EVER_S };
    owner.publish(subjects.trust("w1"), signedList(signer, { version, revoked }));
    const line = await until("it is logged", () => linesOf(agent, says)[0]);
    expect(line.level).toBe(50);
    expect((await machine.commands.run("echo served")).stdout).toBe("served\n");
    await machine.commands.run("echo went on > go");
    expect((await running).stdout).toBe("went on\n");
  });

  test("that the authority signed does revoke, so that the lists above could have", async () => {
    const bus = await startOperatorBus();
    const { agent, machine, credentials } = await joinMachine(bus);
    expect(await machine.ping()).toBeGreaterThan(0);
    const owner = await connectAs(bus.url, bus.busOwner());
    const revoked = { [credentials.key.publicKey]: FOR_EVER_S };
    owner.publish(subjects.trust("w1"), signedList(bus.keys.controlSigner, { version: 99n, revoked }));
    await until("it is taken in", () =>
      linesOf(agent, "took in a new trust list").find((line) => line["version"] === "99"),
    );
    await expect(machine.commands.run("true", { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: "unauthenticated",
    });
  });
});
