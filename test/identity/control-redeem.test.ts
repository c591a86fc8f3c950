import type { NatsConnection } from "@nats-io/transport-node";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { recordKey } from "../../control/authority/records.js";
import { revokeMachine } from "../../control/authority/revoke.js";
import { listTokens, revokeToken } from "../../control/authority/tokens.js";
import { startPlane } from "../../control/plane/plane.js";
import { readCertificate, verifyCertificate } from "../../proto/certificate.js";
import { RedeemRequest, SignedTrustList, TrustList } from "../../proto/gen/identity.js";
import { trustText } from "../../proto/identity.js";
import { type JoinToken, parseJoinToken } from "../../proto/join-token.js";
import { createSigningKey, isSignedBy, signingKeyFromSeed } from "../../proto/nkey.js";
import { inboxPrefix, subjects } from "../../proto/subjects.js";
import { atEnd, shared } from "../support/at-end.js";
import { faultOf } from "../support/fails.js";
import {
  agentOf,
  connectAs,
  joinOf,
  readRedeemReply,
  redeemBytes,
  redeemOver,
  startOperatorBus,
} from "../support/operator.js";

const bus = shared(() => startOperatorBus());

const HOUR_MS = 3_600_000;
const userKey = () => createSigningKey("user");

let names = 0;
const freshName = (): string => `box-${++names}`;

const machineRecord = async (machine: string, workspace = "w1") =>
  (await bus().authority.records.machines.get(recordKey({ workspace, machine }))).record;

/** A token and a connection of its own bus user. */
const opened = async (
  options: Parameters<ReturnType<typeof bus>["token"]>[0] = {},
): Promise<{ token: JoinToken; nc: NatsConnection }> => {
  const token = parseJoinToken(await bus().token(options));
  return { token, nc: await connectAs(bus().url, joinOf(token)) };
};

describe("redeeming a token", () => {
  test("gives the machine an identity that it can serve with", async () => {
    const { token, nc } = await opened();
    const [key, machine] = [userKey(), freshName()];
    const enrolment = await redeemOver(nc, { token, machine, key });
    const authority = bus().keys.agentSigner.publicKey;
    expect(verifyCertificate(enrolment.jwt, { authority, nowMs: Date.now() })).toMatchObject({
      name: machine,
      workspace: "w1",
      role: "agent",
      publicKey: key.publicKey,
    });
    expect(readCertificate(enrolment.renewalJwt).expiresMs).toBe(Infinity);
    const agent = await connectAs(bus().url, agentOf({ workspace: "w1", machine }, key, enrolment.jwt));
    expect(agent.isClosed()).toBe(false);
    expect(await machineRecord(machine)).toMatchObject({ status: "active", publicKey: key.publicKey });
  });

  test("gives its workspace a trust list that the authority signed", async () => {
    const { authority, keys } = bus();
    await bus().enrol({ workspace: "fresh", machine: "m1" });
    const { value } = await authority.records.trust.get("fresh");
    const signed = SignedTrustList.decode(value ?? new Uint8Array());
    expect(isSignedBy(keys.controlSigner.publicKey, trustText(signed.list), signed.signature)).toBe(true);
    expect(TrustList.decode(signed.list)).toMatchObject({ workspace: "fresh", version: 1n, revoked: {} });
  });

  test("again by the same machine, which did not get the answer, gives the same identity anew", async () => {
    const { token, nc } = await opened();
    const fields = { token, key: userKey(), machine: freshName() };
    const [first, second] = [await redeemOver(nc, fields), await redeemOver(nc, fields)];
    expect(readCertificate(second.jwt).publicKey).toBe(readCertificate(first.jwt).publicKey);
  });
});

describe("a token is refused with one clear sentence when it", () => {
  test("was used by another machine", async () => {
    const { token, nc } = await opened();
    const [first, second] = [freshName(), freshName()];
    await redeemOver(nc, { token, machine: first, key: userKey() });
    const fault = await faultOf(redeemOver(nc, { token, machine: second, key: userKey() }));
    expect(fault.code).toBe("unauthenticated");
    expect(fault.message).toMatch(new RegExp(`^the join token was used already, at .* by ${first}$`));
    expect(await machineRecord(second)).toBeUndefined();
  });

  test("was used under the same name with another key", async () => {
    const { token, nc } = await opened();
    const machine = freshName();
    await redeemOver(nc, { token, machine, key: userKey() });
    const fault = await faultOf(redeemOver(nc, { token, machine, key: userKey(), replace: true }));
    expect(fault).toMatchObject({ code: "unauthenticated" });
  });

  test("has expired", async () => {
    const { token, nc } = await opened({ expiresInMs: 50 });
    await sleep(60);
    const machine = freshName();
    const fault = await faultOf(redeemOver(nc, { token, machine, key: userKey() }));
    expect(fault.code).toBe("unauthenticated");
    expect(fault.message).toMatch(/^the join token expired at \S+Z \(it is \S+Z here\)$/);
    expect(await machineRecord(machine)).toBeUndefined();
  });

  test("was revoked", async () => {
    const { token, nc } = await opened();
    const id = signingKeyFromSeed(token.seed).publicKey;
    await revokeToken(bus().authority, id);
    const fault = await faultOf(redeemOver(nc, { token, machine: freshName(), key: userKey() }));
    expect(fault).toMatchObject({ code: "unauthenticated", message: "the join token was revoked" });
    expect((await listTokens(bus().authority)).find((one) => one.id === id)?.state).toBe("revoked");
  });

  test("is for another name", async () => {
    const { token, nc } = await opened({ machine: "my-laptop" });
    const fault = await faultOf(redeemOver(nc, { token, machine: "my-lap", key: userKey() }));
    expect(fault.code).toBe("invalid");
    expect(fault.message).toBe("the join token is for a machine named my-laptop, not my-lap");
  });

  test("is not known", async () => {
    const { token, nc } = await opened();
    const key = userKey();
    const owner = await connectAs(bus().url, bus().busOwner());
    const other = { ...token, seed: key.seed };
    const bytes = redeemBytes({ token: other, machine: freshName(), key: userKey() });
    const reply = owner.subscribe(`${inboxPrefix.join(key.publicKey)}.x`, { max: 1 });
    owner.publish(subjects.redeem("w1"), bytes, { reply: reply.getSubject() });
    for await (const message of reply)
      expect(() => readRedeemReply(message.data)).toThrow("the join token is not known here");
    expect(nc.isClosed()).toBe(false);
  });

  test("is for another workspace", async () => {
    const { token } = await opened();
    const owner = await connectAs(bus().url, bus().busOwner());
    const { publicKey } = signingKeyFromSeed(token.seed);
    const reply = owner.subscribe(`${inboxPrefix.join(publicKey)}.x`, { max: 1 });
    const bytes = redeemBytes({
      token: { ...token, workspace: "w2" },
      machine: freshName(),
      key: userKey(),
    });
    owner.publish(subjects.redeem("w2"), bytes, { reply: reply.getSubject() });
    for await (const message of reply)
      expect(() => readRedeemReply(message.data)).toThrow("is not known here");
  });

  test.each([0, 0.3, 0.6, 0.99])("is truncated to %f of its length", async (part) => {
    const text = await bus().token();
    expect(() => parseJoinToken(text.slice(0, Math.floor(text.length * part)))).toThrow(/the join token is/);
  });

  test("has a changed byte, whichever", async () => {
    const text = await bus().token();
    for (let at = 4; at < text.length; at += 7) {
      const other = text[at] === "A" ? "B" : "A";
      expect(() => parseJoinToken(text.slice(0, at) + other + text.slice(at + 1))).toThrow(
        /the join token is/,
      );
    }
  });
});

describe("a request to redeem is refused when", () => {
  test("the machine's clock is an hour off, with both times", async () => {
    const { token, nc } = await opened();
    for (const offMs of [-HOUR_MS, HOUR_MS]) {
      const timeMs = Date.now() + offMs;
      const fault = await faultOf(redeemOver(nc, { token, machine: freshName(), key: userKey(), timeMs }));
      expect(fault.code).toBe("invalid");
      expect(fault.message).toContain(`it says ${new Date(timeMs).toISOString()}, and it is `);
    }
    await redeemOver(nc, { token, machine: freshName(), key: userKey() });
  });

  test("any of its fields was changed after it was signed", async () => {
    const { token, nc } = await opened();
    const signed = RedeemRequest.decode(redeemBytes({ token, machine: freshName(), key: userKey() }));
    const changes: Partial<RedeemRequest>[] = [
      { machine: freshName() },
      { publicKey: userKey().publicKey },
      { timeMs: signed.timeMs + 1n },
      { replace: true },
      { tokenSignature: new Uint8Array(64) },
      { machineSignature: new Uint8Array(0) },
    ];
    for (const change of changes) {
      const bytes = RedeemRequest.encode({ ...signed, ...change }).finish();
      const { data } = await nc.request(subjects.redeem("w1"), bytes, { timeout: 2_000 });
      expect(() => readRedeemReply(data)).toThrow(/^the request is not signed with/);
    }
  });

  test.each(["a.b", "*", ">", "", "All", "all", "../x", "m1 "])("the name is %j", async (machine) => {
    const { token, nc } = await opened();
    const fault = await faultOf(redeemOver(nc, { token, machine, key: userKey() }));
    expect(fault).toMatchObject({ code: "invalid" });
    expect(fault.message).toContain("machine name");
  });

  test("the name is taken, and the token is still good for another", async () => {
    const machine = freshName();
    await bus().enrol({ workspace: "w1", machine });
    const { token, nc } = await opened();
    const fault = await faultOf(redeemOver(nc, { token, machine, key: userKey() }));
    expect(fault.code).toBe("conflict");
    expect(fault.message).toContain(`the name w1/${machine} is taken by a machine that joined at `);
    expect(fault.advice).toContain("--force");
    await redeemOver(nc, { token, machine: freshName(), key: userKey() });
  });
});

describe("a name used again", () => {
  test("by a machine that takes it over cuts the other off", async () => {
    const ref = { workspace: "w1", machine: freshName() };
    const first = await bus().enrol(ref);
    const old = await connectAs(bus().url, agentOf(ref, first.key, first.enrolment.jwt));
    const second = await bus().enrol(ref, { replace: true });
    await old.closed();
    await expect(connectAs(bus().url, agentOf(ref, first.key, first.enrolment.renewalJwt))).rejects.toThrow(
      /authorization violation/i,
    );
    expect(await machineRecord(ref.machine)).toMatchObject({
      status: "active",
      publicKey: second.key.publicKey,
    });
  });

  test("after it was revoked inherits nothing, and the old key stays dead", async () => {
    const ref = { workspace: "w1", machine: freshName() };
    const first = await bus().enrol(ref);
    await revokeMachine(bus().authority, ref, "test");
    const second = await bus().enrol(ref);
    const agent = await connectAs(bus().url, agentOf(ref, second.key, second.enrolment.jwt));
    expect(agent.isClosed()).toBe(false);
    for (const jwt of [first.enrolment.jwt, first.enrolment.renewalJwt])
      await expect(connectAs(bus().url, agentOf(ref, first.key, jwt))).rejects.toThrow(
        /authorization violation/i,
      );
    const { token, nc } = await opened();
    const fault = await faultOf(redeemOver(nc, { token, machine: freshName(), key: first.key }));
    expect(fault).toMatchObject({ code: "unauthenticated", message: "the machine's key was revoked" });
  });

  test("a revoked machine cannot come back with the token that it joined with", async () => {
    const { token, nc } = await opened();
    const fields = { token, key: userKey(), machine: freshName() };
    await redeemOver(nc, fields);
    await revokeMachine(bus().authority, { workspace: "w1", machine: fields.machine }, "test");
    expect(await faultOf(redeemOver(nc, fields))).toMatchObject({ code: "unauthenticated" });
    expect(await machineRecord(fields.machine)).toMatchObject({ status: "revoked" });
  });

  test("that begins like another's is another's", async () => {
    const machine = freshName();
    const [long, short] = [`${machine}-long`, machine];
    const { key } = await bus().enrol({ workspace: "w1", machine: long });
    await bus().enrol({ workspace: "w1", machine: short });
    await revokeMachine(bus().authority, { workspace: "w1", machine: short }, "test");
    expect(await machineRecord(long)).toMatchObject({ status: "active", publicKey: key.publicKey });
  });
});

describe("the service answers", () => {
  test("only into the inbox of the token that asks", async () => {
    const { token, nc } = await opened();
    const owner = await connectAs(bus().url, bus().busOwner());
    const heard: string[] = [];
    const { publicKey } = signingKeyFromSeed(token.seed);
    const elsewhere = [
      "agent.w1.m1.rpc",
      "agent.w1.all.trust",
      "_INBOX.x",
      `_INBOX_join.${userKey().publicKey}.x`,
      `_INBOX_join.${publicKey}`,
      `_INBOX_join.${publicKey}x.y`,
      "$KV.machines.w1.m1",
    ];
    for (const subject of elsewhere)
      owner.subscribe(subject, { callback: (_error, message) => void heard.push(message.subject) });
    await owner.flush();
    const bytes = redeemBytes({ token, machine: freshName(), key: userKey() });
    for (const reply of elsewhere) nc.publish(subjects.redeem("w1"), bytes, { reply });
    nc.publish(subjects.redeem("w1"), Buffer.from([255, 255, 255]), { reply: "_INBOX.x" });
    await nc.flush();
    await sleep(100);
    expect(heard).toEqual([]);
  });
});

const RACES = 1_000;
const AT_ONCE = 25;

test(
  "attack 6: of two that redeem one token at once exactly one wins, 1,000 times, and the other is not enrolled",
  { timeout: 60_000 },
  async () => {
    const { url, keys, home, authority } = bus();
    // Two planes, so that the race is between processes that share nothing but the bus.
    const second = await startPlane({ servers: [url], onProblem: () => undefined, keys, home });
    atEnd(() => second.close());
    const callers = await Promise.all([1, 2].map(() => connectAs(url, bus().busOwner())));
    const waiting = new Map<string, (data: Uint8Array) => void>();
    callers[0]?.subscribe("_INBOX_join.>", {
      callback: (_error, message) => waiting.get(message.subject)?.(message.data),
    });
    await callers[0]?.flush();

    const attempt = async (nc: NatsConnection, token: JoinToken, machine: string) => {
      const { publicKey } = signingKeyFromSeed(token.seed);
      const reply = `${inboxPrefix.join(publicKey)}.${machine}`;
      const answer = new Promise<Uint8Array>((resolve) => waiting.set(reply, resolve));
      nc.publish(subjects.redeem("w1"), redeemBytes({ token, machine, key: userKey() }), { reply });
      return { machine, enrolment: readRedeemReply(await answer) };
    };

    const race = async (at: number): Promise<void> => {
      const token = parseJoinToken(await bus().token());
      const outcomes = await Promise.allSettled(
        callers.map((nc, side) => attempt(nc, token, `race-${at}-${side}`)),
      );
      const won = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
      const lost = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
      expect(won).toHaveLength(1);
      expect(lost).toEqual([expect.objectContaining({ code: "unauthenticated" })]);
      const enrolled = await Promise.all([0, 1].map((side) => machineRecord(`race-${at}-${side}`)));
      expect(enrolled.filter((record) => record !== undefined)).toMatchObject([{ machine: won[0]?.machine }]);
    };
    for (let at = 0; at < RACES; at += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, (_, offset) => race(at + offset)));
    const used = (await listTokens(authority)).filter(({ usedBy }) => usedBy?.startsWith("race-") === true);
    expect(used).toHaveLength(RACES);
  },
);

test("of many tokens for one name exactly one wins, and the others are still good", async () => {
  const machine = freshName();
  const joins = await Promise.all(Array.from({ length: 12 }, () => opened()));
  const outcomes = await Promise.allSettled(
    joins.map(({ token, nc }) => redeemOver(nc, { token, machine, key: userKey() })),
  );
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  for (const [at, { status }] of outcomes.entries()) {
    const join = joins[at];
    if (status === "fulfilled" || join === undefined) continue;
    await redeemOver(join.nc, { token: join.token, machine: freshName(), key: userKey() });
  }
});
