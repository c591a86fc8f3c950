import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { publishTrust } from "../../../control/authority/trust.js";
import { readCertificate } from "../../../proto/certificate.js";
import { SignedTrustList, TrustList } from "../../../proto/gen/identity.js";
import { trustText } from "../../../proto/identity.js";
import { createSigningKey, type SigningKey } from "../../../proto/nkey.js";
import { subjects } from "../../../proto/subjects.js";
import { type AgentProcess, type LogLine, serving } from "../../support/agent.js";
import { shared } from "../../support/at-end.js";
import { connectAs, startOperatorBus } from "../../support/operator.js";
import { until } from "../../support/until.js";
import { joinMachine } from "./joined.js";

const linesOf = ({ log }: AgentProcess, text: string): LogLine[] =>
  log.filter(({ msg }) => msg.includes(text));

const renewals = (agent: AgentProcess): number => linesOf(agent, "renewed this machine's credential").length;

const INFO = 30;
const ERROR = 50;

describe("a machine's JWT", () => {
  const short = shared(async () => joinMachine(await startOperatorBus({ agentJwtMs: 6_000 })));

  test("is renewed again and again, and a command that runs across each change is answered", async () => {
    const { place, agent, machine } = short();
    const first = place.identity();
    const { expiresMs } = readCertificate(first.jwt);
    await machine.commands.run("mkfifo go");
    let swaps = 0;
    for (const endMs = Date.now() + 9_000; Date.now() < endMs; swaps++) {
      const before = renewals(agent);
      const held = machine.commands.run("touch begun; cat go");
      await until("it runs", () => existsSync(join(place.root, "begun")));
      await until("the next renewal", () => renewals(agent) > before);
      await machine.commands.run("rm begun; echo let go > go");
      expect((await held).stdout).toBe("let go\n");
    }
    expect(swaps).toBeGreaterThanOrEqual(3);
    expect(Date.now()).toBeGreaterThan(expiresMs + 1_000);
    const { jwt, ...rest } = place.identity();
    expect(jwt).not.toBe(first.jwt);
    expect(rest).toMatchObject({ seed: first.seed, machine: first.machine, joinedMs: first.joinedMs });
    expect(agent.log.filter(({ level }) => level > INFO)).toEqual([]);
  });

  test("may expire under a command that outlives it, which is answered when sent again and ran once", async () => {
    const { place, agent, machine } = short();
    // Only the connection that a request came by may answer it, and this one's has gone by then.
    const send = () =>
      machine.commands.run("echo x >> log; sleep 6.2; touch ended; echo done", { requestId: "long" });
    send().catch(() => undefined);
    await until("it has ended", () => existsSync(join(place.root, "ended")));
    expect((await send()).stdout).toBe("done\n");
    expect(readFileSync(join(place.root, "log"), "utf8")).toBe("x\n");
    expect(linesOf(agent, "lost the bus")).toEqual([]);
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
    ["an older version", { version: 1n, isGenuine: true, says: "older than the last one" }],
    ["a bad signature", { version: 99n, isGenuine: false, says: "a message could not be handled" }],
  ])("with %s changes nothing, and is logged", async (_what, { version, isGenuine, says }) => {
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
    expect(line.level).toBe(ERROR);
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
