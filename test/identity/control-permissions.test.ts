import type { NatsConnection } from "@nats-io/transport-node";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { TRUST_BUCKET } from "../../proto/identity.js";
import { parseJoinToken } from "../../proto/join-token.js";
import { createSigningKey } from "../../proto/nkey.js";
import { inboxPrefix } from "../../proto/subjects.js";
import { shared } from "../support/at-end.js";
import {
  agentOf,
  connectAs,
  controlOf,
  joinOf,
  type RawUser,
  startOperatorBus,
} from "../support/operator.js";

const bus = shared(() => startOperatorBus());

const SETTLE_MS = 50;
const M1 = { workspace: "w1", machine: "m1" };

interface Ear {
  readonly bytes: () => number;
  readonly refusal: () => Error | undefined;
}

const listen = (nc: NatsConnection, subject: string): Ear => {
  let bytes = 0;
  let refusal: Error | undefined;
  nc.subscribe(subject, {
    callback: (error, message) => {
      if (error === null) bytes += message.data.length;
      else refusal = error;
    },
  });
  return { bytes: () => bytes, refusal: () => refusal };
};

/** Everything that belongs to others, or to the servers, as somebody of w1 would try it. */
const FOREIGN = [
  "agent.w2.m1.rpc",
  "agent.w2.>",
  "agent.w2.all.rpc",
  "agent.*.m1.rpc",
  "agent.>",
  "agentev.w2.>",
  "agentev.*.m1.presence",
  "agentev.>",
  "control.w1.redeem",
  "control.>",
  "_INBOX.>",
  "_INBOX.somebody",
  "_INBOX_agent.w2.m1.>",
  "_INBOX_agent.w1.m2.>",
  "_INBOX_agent.>",
  "_INBOX_control.>",
  "_INBOX_control.*.>",
  "_INBOX_join.>",
  "_INBOX_plane.>",
  "$SYS.>",
  "$SYS.REQ.CLAIMS.UPDATE",
  "$JS.>",
  "$JS.API.>",
  "$KV.>",
  "$KV.tokens.>",
  ">",
  "*",
  "*.>",
] as const;

/** Speaks on every one of those subjects as somebody who may. */
const speakEverywhere = async (): Promise<void> => {
  const nc = await connectAs(bus().url, bus().busOwner());
  for (const subject of FOREIGN)
    nc.publish(subject.replaceAll("*", "x").replaceAll(">", "x"), Buffer.from("secret"));
  await nc.flush();
  await sleep(SETTLE_MS);
};

const renewalUser = async (): Promise<RawUser> => {
  const ref = { workspace: "w1", machine: "renews" };
  const { key, enrolment } = await bus().enrol(ref, { replace: true });
  return agentOf(ref, key, enrolment.renewalJwt);
};

const users: readonly [string, () => Promise<RawUser>][] = [
  ["an agent", async () => bus().agentUser(M1)],
  ["a renewal", renewalUser],
  ["a control credential", async () => controlOf(await bus().control())],
  ["a join token", async () => joinOf(parseJoinToken(await bus().token()))],
];

describe.each(users)("attack 9: %s", (_who, userOf) => {
  test("hears not one byte that is not meant for it", async () => {
    const nc = await connectAs(bus().url, await userOf());
    const ears = FOREIGN.map((subject) => [subject, listen(nc, subject)] as const);
    await nc.flush();
    await speakEverywhere();
    await nc.flush();
    for (const [subject, ear] of ears) {
      expect([subject, ear.bytes()]).toEqual([subject, 0]);
      expect([subject, ear.refusal()?.message]).toEqual([subject, expect.stringContaining("Permissions")]);
    }
  });

  test("is heard by nobody where it may not speak", async () => {
    const owner = await connectAs(bus().url, bus().busOwner());
    const heard: string[] = [];
    owner.subscribe(">", {
      callback: (error, message) => {
        if (error === null && Buffer.from(message.data).toString() === "forged") heard.push(message.subject);
      },
    });
    await owner.flush();
    const nc = await connectAs(bus().url, await userOf());
    const targets = [
      ...FOREIGN.map((subject) => subject.replaceAll("*", "x").replaceAll(">", "x")),
      "agent.w1.m2.trust",
      "agent.w1.all.trust",
      "agentev.w1.m2.presence",
      "agentev.w1.m2.claim",
      `$KV.${TRUST_BUCKET}.w1`,
      "$JS.API.STREAM.DELETE.KV_tokens",
      "$JS.API.DIRECT.GET.KV_tokens.$KV.tokens.x",
      "$JS.API.DIRECT.GET.KV_trust.$KV.trust.w2",
    ].filter((subject) => subject !== "control.w1.redeem");
    for (const subject of targets) nc.publish(subject, Buffer.from("forged"));
    await nc.flush();
    await owner.flush();
    await sleep(SETTLE_MS);
    expect(heard).toEqual([]);
  });
});

describe("what each may do", () => {
  test("an agent reads its own workspace's trust list, and no other", async () => {
    const ref = { workspace: "w1", machine: "reader" };
    const { key, enrolment } = await bus().enrol(ref);
    const nc = await connectAs(bus().url, agentOf(ref, key, enrolment.jwt));
    const get = (workspace: string) =>
      nc.request(`$JS.API.DIRECT.GET.KV_${TRUST_BUCKET}.$KV.${TRUST_BUCKET}.${workspace}`, "", {
        timeout: 1_000,
      });
    const mine = await get("w1");
    expect(mine.headers?.get("Nats-Subject")).toBe(`$KV.${TRUST_BUCKET}.w1`);
    expect(mine.data.length).toBeGreaterThan(0);
    await expect(get("w2")).rejects.toThrow(/permissions violation/i);
  });

  test("an agent hears what is meant for it and answers it once", async () => {
    const agent = await connectAs(bus().url, bus().agentUser(M1));
    agent.subscribe("agent.w1.m1.rpc", {
      callback: (_error, message) => {
        message.respond("once");
        message.respond("twice");
      },
    });
    await agent.flush();
    const control = await connectAs(bus().url, controlOf(await bus().control()));
    let answers = 0;
    const inbox = `${inboxPrefix.control((await bus().control()).key.publicKey)}.x`;
    expect((await control.request("agent.w1.m1.rpc", "", { timeout: 2_000 })).string()).toBe("once");
    const owner = await connectAs(bus().url, bus().busOwner());
    owner.subscribe(inbox, { callback: () => void answers++ });
    owner.publish("agent.w1.m1.rpc", "", { reply: inbox });
    await owner.flush();
    await sleep(SETTLE_MS);
    expect(answers).toBe(1);
  });

  test("a machine whose name begins like another's hears nothing of the other's", async () => {
    const short = await connectAs(bus().url, bus().agentUser({ workspace: "w1", machine: "m1" }));
    const long = await connectAs(bus().url, bus().agentUser({ workspace: "w1", machine: "m10" }));
    const owner = await connectAs(bus().url, bus().busOwner());
    const [own, others] = [listen(short, "agent.w1.m1.>"), listen(short, "agent.w1.m10.>")];
    const [longOwn, shortOthers] = [listen(long, "agent.w1.m10.>"), listen(long, "agent.w1.m1.>")];
    await Promise.all([short.flush(), long.flush()]);
    owner.publish("agent.w1.m10.rpc", "12345");
    await owner.flush();
    await Promise.all([short.flush(), long.flush()]);
    expect([own.bytes(), others.bytes(), longOwn.bytes(), shortOthers.bytes()]).toEqual([0, 0, 5, 0]);
    expect([others.refusal(), shortOthers.refusal()]).toEqual([expect.any(Error), expect.any(Error)]);
  });

  test("a JWT without its seed, or with its permissions changed, is not let onto the bus", async () => {
    const stolen = bus().agentUser(M1);
    const { url } = bus();
    await expect(connectAs(url, { ...stolen, key: createSigningKey("user") })).rejects.toThrow(
      /authorization violation/i,
    );
    const [header = "", body = "", signature = ""] = stolen.jwt.split(".");
    const claims = JSON.parse(Buffer.from(body, "base64url").toString());
    claims.nats.tags = ["ws:w2"];
    const changed = Buffer.from(JSON.stringify(claims)).toString("base64url");
    await expect(connectAs(url, { ...stolen, jwt: `${header}.${changed}.${signature}` })).rejects.toThrow(
      /authorization violation/i,
    );
  });

  test("a machine's user with permissions of its own, signed by the machines' signer, is refused", async () => {
    const { agentSigner, account } = bus().keys;
    const user = bus().agentUser(M1);
    const [header = "", body = ""] = user.jwt.split(".");
    const claims = JSON.parse(Buffer.from(body, "base64url").toString());
    claims.nats = { ...claims.nats, issuer_account: account.publicKey, subs: -1, data: -1, payload: -1 };
    claims.nats.sub = { allow: [">"] };
    const text = `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
    const jwt = `${text}.${agentSigner.sign(Buffer.from(text)).toString("base64url")}`;
    await expect(connectAs(bus().url, { ...user, jwt })).rejects.toThrow(/authorization violation/i);
  });

  test("a machine's user without a workspace may do nothing", async () => {
    const { agentSigner } = bus().keys;
    const user = bus().agentUser(M1);
    const [header = "", body = ""] = user.jwt.split(".");
    const claims = JSON.parse(Buffer.from(body, "base64url").toString());
    claims.nats.tags = [];
    const text = `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
    const jwt = `${text}.${agentSigner.sign(Buffer.from(text)).toString("base64url")}`;
    const nc = await connectAs(bus().url, { ...user, jwt });
    const subjects = [...FOREIGN, "agent.w1.m1.rpc", "agentev.w1.m1.claim", "_INBOX_agent.w1.m1.x"];
    const ears = subjects.map((subject) => [subject, listen(nc, subject)] as const);
    await nc.flush();
    await speakEverywhere();
    await nc.flush();
    for (const [subject, ear] of ears)
      expect([subject, ear.bytes(), ear.refusal()]).toEqual([subject, 0, expect.any(Error)]);
  });
});
