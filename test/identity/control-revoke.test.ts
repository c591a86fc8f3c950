import { setTimeout as sleep } from "node:timers/promises";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createCredential, listCredentials } from "../../control/authority/creds.js";
import { introduceAccount } from "../../control/authority/introduce.js";
import { recordKey } from "../../control/authority/records.js";
import { reconcile, revokeCredential, revokeMachine } from "../../control/authority/revoke.js";
import { startPlane } from "../../control/plane/plane.js";
import { FarhandError } from "../../proto/farhand-error.js";
import {
  type Enrolment,
  RenewReply,
  RenewRequest,
  SignedTrustList,
  TrustList,
} from "../../proto/gen/identity.js";
import { renewText } from "../../proto/identity.js";
import { createSigningKey, type SigningKey } from "../../proto/nkey.js";
import { inboxPrefix, type MachineRef, subjects } from "../../proto/subjects.js";
import { readCertificate } from "../../proto/certificate.js";
import { atEnd, shared } from "../support/at-end.js";
import { faultOf } from "../support/fails.js";
import { until } from "../support/until.js";
import { agentOf, connectAs, controlOf, type RawUser, startOperatorBus } from "../support/operator.js";

const JWT_MS = 120_000;
const bus = shared(() => startOperatorBus({ agentJwtMs: JWT_MS }));

const WITHIN_MS = 1_000;
let names = 0;
const freshRef = (workspace = "w1"): MachineRef => ({ workspace, machine: `box-${++names}` });

const renewBytes = (ref: MachineRef, key: SigningKey, publicKey = key.publicKey): Uint8Array => {
  const facts = { machine: ref.machine, publicKey, timeMs: BigInt(Date.now()) };
  return RenewRequest.encode({ ...facts, signature: key.sign(renewText(ref.workspace, facts)) }).finish();
};

const readRenewReply = (data: Uint8Array): Enrolment => {
  const { outcome } = RenewReply.decode(data);
  if (outcome?.$case === "enrolment") return outcome.value;
  if (outcome === undefined) throw new Error("an empty reply");
  throw FarhandError.fromAgentError(outcome.value, { machine: "", requestId: "" });
};

/** Asks as this user, for this machine. */
const renewAs = async (user: RawUser, ref: MachineRef, bytes: Uint8Array): Promise<Enrolment> => {
  const nc = await connectAs(bus().url, user);
  try {
    return readRenewReply((await nc.request(subjects.renew(ref.workspace), bytes, { timeout: 2_000 })).data);
  } finally {
    await nc.close();
  }
};

const trustOf = async (workspace: string): Promise<TrustList> => {
  const { value } = await bus().authority.records.trust.get(workspace);
  return TrustList.decode(SignedTrustList.decode(value ?? new Uint8Array()).list);
};

describe("renewing", () => {
  test("gives a new JWT, with the old one or with the renewal JWT, whatever the machine's clock says", async () => {
    const ref = freshRef();
    const { key, enrolment } = await bus().enrol(ref);
    for (const jwt of [enrolment.jwt, enrolment.renewalJwt]) {
      const renewed = await renewAs(agentOf(ref, key, jwt), ref, renewBytes(ref, key));
      const { expiresMs, publicKey } = readCertificate(renewed.jwt);
      expect(publicKey).toBe(key.publicKey);
      expect(Math.abs(expiresMs - Date.now() - JWT_MS)).toBeLessThan(5_000);
      expect(Math.abs(Number(renewed.controlTimeMs) - Date.now())).toBeLessThan(5_000);
    }
    const facts = { machine: ref.machine, publicKey: key.publicKey, timeMs: 0n };
    const signature = key.sign(renewText("w1", facts));
    const bytes = RenewRequest.encode({ ...facts, signature }).finish();
    await renewAs(agentOf(ref, key, enrolment.jwt), ref, bytes);
  });

  test("is refused to a foreign key, to a false signature and to a name that was never enrolled", async () => {
    const ref = freshRef();
    const { key, enrolment } = await bus().enrol(ref);
    const user = agentOf(ref, key, enrolment.jwt);
    const stranger = createSigningKey("user");
    const foreign = await faultOf(renewAs(user, ref, renewBytes(ref, stranger)));
    expect(foreign).toMatchObject({ code: "unauthenticated" });
    expect(foreign.message).toBe(`the machine w1/${ref.machine} is not enrolled with this key`);
    const forged = await faultOf(renewAs(user, ref, renewBytes(ref, stranger, key.publicKey)));
    expect(forged.message).toBe("the request is not signed with the machine's key");
    const unknown = freshRef();
    const owner = { ...bus().busOwner(), inboxPrefix: inboxPrefix.agent(unknown) };
    expect(await faultOf(renewAs(owner, unknown, renewBytes(unknown, key)))).toMatchObject({
      code: "unauthenticated",
    });
  });

  test("of one machine is not answered into the inbox of another, nor anywhere else", async () => {
    const [mine, other] = [freshRef(), freshRef()];
    const { key, enrolment } = await bus().enrol(mine);
    const nc = await connectAs(bus().url, agentOf(mine, key, enrolment.jwt));
    const owner = await connectAs(bus().url, bus().busOwner());
    const heard: string[] = [];
    const elsewhere = [
      `${inboxPrefix.agent(other)}.x`,
      inboxPrefix.agent(mine),
      "agent.w1.all.rpc",
      `_INBOX_agent.w1.${mine.machine}x.y`,
      `_INBOX_agent.w2.${mine.machine}.x`,
      "_INBOX.x",
    ];
    for (const subject of elsewhere)
      owner.subscribe(subject, { callback: (_error, message) => void heard.push(message.subject) });
    await owner.flush();
    for (const reply of elsewhere) nc.publish(subjects.renew("w1"), renewBytes(mine, key), { reply });
    await nc.flush();
    await sleep(100);
    expect(heard).toEqual([]);
  });
});

describe("revoking a machine", () => {
  test("cuts its connection within a second, after it could hear of it, and nothing lets it back in", async () => {
    const ref = freshRef();
    const { key, enrolment } = await bus().enrol(ref);
    const nc = await connectAs(bus().url, agentOf(ref, key, enrolment.jwt));
    const lists: TrustList[] = [];
    nc.subscribe(subjects.trust("w1"), {
      callback: (_error, message) =>
        void lists.push(TrustList.decode(SignedTrustList.decode(message.data).list)),
    });
    await nc.flush();
    const before = (await trustOf("w1")).version;
    const start = performance.now();
    const closed = nc.closed().then(() => performance.now() - start);
    await revokeMachine(bus().authority, ref, "test");
    expect(await closed).toBeLessThan(WITHIN_MS);
    expect(lists.at(-1)?.version).toBe(before + 1n);
    expect(lists.at(-1)?.machines[ref.machine]).toBe(key.publicKey);
    for (const jwt of [enrolment.jwt, enrolment.renewalJwt])
      await expect(connectAs(bus().url, agentOf(ref, key, jwt))).rejects.toThrow(/authorization violation/i);
    const { records } = bus().authority;
    expect((await records.machines.get(recordKey(ref))).record).toMatchObject({ status: "revoked" });
    expect((await records.revocations.get(key.publicKey)).record).toMatchObject({
      what: "machine",
      name: ref.machine,
      by: "test",
    });
  });

  test("leaves the others of its workspace and of other workspaces alone", async () => {
    const refs = [freshRef(), freshRef(), freshRef("w2")] as const;
    const connections = [];
    for (const ref of refs) {
      const { key, enrolment } = await bus().enrol(ref);
      connections.push(await connectAs(bus().url, agentOf(ref, key, enrolment.jwt)));
    }
    await revokeMachine(bus().authority, refs[0], "test");
    await connections[0]?.closed();
    await sleep(100);
    expect(connections.map((nc) => nc.isClosed())).toEqual([true, false, false]);
    expect((await trustOf("w2")).machines).toEqual({});
  });

  test("twice is the same as once, and one that never joined is one clear sentence", async () => {
    const ref = freshRef();
    await bus().enrol(ref);
    await revokeMachine(bus().authority, ref, "test");
    await revokeMachine(bus().authority, ref, "test");
    const unknown = await faultOf(
      revokeMachine(bus().authority, { workspace: "w1", machine: "nobody" }, "t"),
    );
    expect(unknown).toMatchObject({ code: "invalid", message: "no machine w1/nobody has joined" });
  });

  test("of many at once loses none", async () => {
    const refs = Array.from({ length: 8 }, () => freshRef("many"));
    const users: RawUser[] = [];
    for (const ref of refs) {
      const { key, enrolment } = await bus().enrol(ref);
      users.push(agentOf(ref, key, enrolment.jwt));
    }
    await Promise.all(refs.map((ref) => revokeMachine(bus().authority, ref, "test")));
    for (const user of users)
      await expect(connectAs(bus().url, user)).rejects.toThrow(/authorization violation/i);
    expect(Object.keys((await trustOf("many")).machines).toSorted()).toEqual(
      refs.map(({ machine }) => machine).toSorted(),
    );
  });
});

describe("revoking credentials", () => {
  test("by name or by key cuts their connection and puts them on the trust list", async () => {
    const { authority, url } = bus();
    for (const [at, byKey] of [false, true].entries()) {
      const name = `ci-${at}`;
      const credentials = await bus().control({ name });
      const { publicKey } = credentials.key;
      const nc = await connectAs(url, controlOf(credentials));
      const start = performance.now();
      const closed = nc.closed().then(() => performance.now() - start);
      await revokeCredential(authority, byKey ? { publicKey } : { workspace: "w1", name }, "test");
      expect(await closed).toBeLessThan(WITHIN_MS);
      await expect(connectAs(url, controlOf(credentials))).rejects.toThrow(/authorization violation/i);
      const until = (await trustOf("w1")).revoked[publicKey] ?? 0n;
      expect(until * 1000n).toBeGreaterThan(BigInt(Date.now()));
      expect((await listCredentials(authority)).find((one) => one.name === name)?.state).toBe("revoked");
    }
  });

  test("a name is taken until it is revoked, and means other keys then", async () => {
    const { authority, url } = bus();
    const first = await bus().control({ name: "twice" });
    const options = { workspace: "w1", name: "twice", role: "reader" } as const;
    expect(await faultOf(createCredential(authority, options))).toMatchObject({ code: "conflict" });
    await revokeCredential(authority, { workspace: "w1", name: "twice" }, "test");
    await createCredential(authority, options);
    await expect(connectAs(url, controlOf(first))).rejects.toThrow(/authorization violation/i);
  });

  test("that do not exist is one clear sentence", async () => {
    const fault = await faultOf(
      revokeCredential(bus().authority, { workspace: "w1", name: "nobody" }, "test"),
    );
    expect(fault).toMatchObject({ code: "invalid", message: "there are no credentials named w1/nobody" });
  });
});

describe("what is revoked stays so", () => {
  test("when the server starts again from what it was started with", async () => {
    const own = await startOperatorBus();
    const ref = { workspace: "w1", machine: "m1" };
    const { key, enrolment } = await own.enrol(ref);
    await revokeMachine(own.authority, ref, "test");
    await own.server.kill("SIGKILL");
    await own.server.start();
    await expect(connectAs(own.url, agentOf(ref, key, enrolment.jwt))).rejects.toThrow(
      /authorization violation/i,
    );
    const other = await until("the plane is back", () => own.control());
    expect((await connectAs(own.url, controlOf(other))).isClosed()).toBe(false);
  });

  test("when whoever revoked was killed between two steps: the next plane finishes it", async () => {
    const ref = freshRef();
    const { key, enrolment } = await bus().enrol(ref);
    const { machines } = bus().authority.records;
    const { record, revision } = await machines.get(recordKey(ref));
    if (record === undefined) throw new Error("not enrolled");
    await machines.put(recordKey(ref), { ...record, status: "revoked" }, revision);
    const { keys, home, url } = bus();
    const plane = await startPlane({ servers: [url], onProblem: () => undefined, keys, home });
    atEnd(() => plane.close());
    await expect(connectAs(url, agentOf(ref, key, enrolment.jwt))).rejects.toThrow(
      /authorization violation/i,
    );
    await reconcile(bus().authority);
  });

  test("and every file of the authority is for its owner only (attack 19)", () => {
    const { home } = bus();
    expect(existsSync(join(home, "authority.json"))).toBe(true);
    const files = readdirSync(home, { recursive: true, encoding: "utf8" }).map((name) => join(home, name));
    for (const file of [home, ...files.filter((name) => !name.includes("accounts"))])
      expect([file, statSync(file).mode & 0o077]).toEqual([file, 0]);
  });
});

test("telling the servers of the account again undoes no revocation", async () => {
  const ref = freshRef();
  const { key, enrolment } = await bus().enrol(ref);
  await revokeMachine(bus().authority, ref, "test");
  const { url, home, keys } = bus();
  const place = { servers: [url], home };
  expect(await introduceAccount(place, () => undefined)).toBe(keys.account.publicKey);
  await expect(connectAs(url, agentOf(ref, key, enrolment.jwt))).rejects.toThrow(/authorization violation/i);
});
