import { expect, test } from "vitest";
import { createAuthentic } from "../../agent/authentic.js";
import type { Caller } from "../../agent/call.js";
import { createReplayWindow } from "../../agent/replay-window.js";
import type { Credentials } from "../../control/credentials.js";
import { createSessions } from "../../control/sessions.js";
import { formatRequestProof, parseRequestProof } from "../../proto/authentic.js";
import { FarhandError } from "../../proto/farhand-error.js";
import { createSigningKey } from "../../proto/nkey.js";
import { mint, mintCredentials } from "../support/certificates.js";

const REF = { workspace: "w1", machine: "m1" };
const HOUR = 3_600_000;

/** An agent and a caller that know each other, with whatever a test wants different. */
const pair = (change: { credentials?: (made: Credentials) => Credentials; callerSkewMs?: number } = {}) => {
  const [authority, agentAuthority] = [createSigningKey("account"), createSigningKey("account")];
  const agentKey = createSigningKey("user");
  const revoked = new Set<string>();
  let callerSkewMs = change.callerSkewMs ?? 0;
  const agentJwt = mint({ signer: agentAuthority, name: "m1", role: "agent", publicKey: agentKey.publicKey });
  const createAgent = () =>
    createAuthentic({
      workspace: "w1",
      authority: authority.publicKey,
      key: agentKey,
      jwt: () => agentJwt,
      trust: { isRevoked: (publicKey) => revoked.has(publicKey) },
      now: Date.now,
    });
  let agent = createAgent();
  const made = mintCredentials(authority, agentAuthority.publicKey);
  const credentials = change.credentials?.(made) ?? made;
  const sessions = createSessions({ credentials, now: () => Date.now() + callerSkewMs, skewMs: () => 0 });
  let count = 0;
  const message = () => ({
    subject: "agent.w1.m1.rpc",
    reply: `_INBOX.${count++}`,
    payload: Buffer.from("request"),
  });
  return {
    authority,
    agentAuthority,
    agentKey,
    credentials,
    sessions,
    revoked,
    message,
    agent: () => agent,
    restart: () => void (agent = createAgent()),
    setCallerSkew: (ms: number) => void (callerSkewMs = ms),
    /** One request there and its answer back: who the agent thinks asked, and whether we believe the answer. */
    exchange(asked = message()) {
      const proven = sessions.prove(REF, asked);
      const { caller, seal } = agent.open(asked, proven.proof);
      const answer = Buffer.from("answer");
      return { proven, caller, seal, isBelieved: proven.isAuthentic(seal(answer), answer), answer };
    },
  };
};

const faultOf = (caller: Caller | FarhandError): FarhandError => {
  if (caller instanceof FarhandError) return caller;
  throw new Error(`expected a refusal, and got ${JSON.stringify(caller)}`);
};

test("the first request says hello and is answered at once; the next ones carry a MAC", () => {
  const { exchange, credentials } = pair();
  const first = exchange();
  expect(first.caller).toEqual({ name: "caller", role: "operator", publicKey: credentials.key.publicKey });
  expect(first.proven.proof).toMatch(/^h1 /);
  expect(first.isBelieved).toBe(true);
  for (let n = 0; n < 5; n++) {
    const later = exchange();
    expect(later.proven.proof).toMatch(/^s1 /);
    expect(later.caller).toEqual(first.caller);
    expect(later.isBelieved).toBe(true);
  }
});

test("an agent that restarted refuses with its signature, and a new hello works", () => {
  const { exchange, restart, sessions } = pair();
  exchange();
  restart();
  const refused = exchange();
  expect(faultOf(refused.caller)).toMatchObject({ code: "unauthenticated", ran: "no" });
  expect(refused.isBelieved).toBe(true);
  sessions.drop(REF);
  expect(exchange().caller).toMatchObject({ name: "caller" });
});

test("a request without a proof, or with nonsense for one, is unauthenticated", () => {
  const { agent, message } = pair();
  for (const proof of ["", "x", "h1", "s1", "h1 a b c d", "s1 a NaN b", "h1 ".padEnd(10_000, "a.")]) {
    expect(faultOf(agent().open(message(), proof).caller).code).toBe("unauthenticated");
  }
});

test("a request sent again, in its session or as a hello, is refused", () => {
  const { agent, sessions, message, exchange } = pair();
  const asked = message();
  const hello = sessions.prove(REF, asked).proof;
  expect(agent().open(asked, hello).caller).toMatchObject({ name: "caller" });
  expect(faultOf(agent().open(asked, hello).caller).message).toContain("used before");
  exchange();
  const again = message();
  const mac = sessions.prove(REF, again).proof;
  expect(agent().open(again, mac).caller).toMatchObject({ name: "caller" });
  expect(faultOf(agent().open(again, mac).caller).message).toContain("received before");
});

test("one changed bit of the request, its subject, its reply, its counter or its proof is refused", () => {
  const { agent, sessions, message, exchange } = pair();
  const check = (): void => {
    const asked = message();
    const { proof } = sessions.prove(REF, asked);
    const parsed = parseRequestProof(proof);
    if (parsed === undefined) throw new Error("no proof");
    const secret = parsed.kind === "hello" ? parsed.signature : parsed.mac;
    const flipped = secret.replace(/^./, (char) => (char === "A" ? "B" : "A"));
    const changed =
      parsed.kind === "hello"
        ? [
            formatRequestProof({ ...parsed, signature: flipped }),
            formatRequestProof({ ...parsed, timeMs: parsed.timeMs + 1 }),
          ]
        : [
            formatRequestProof({ ...parsed, mac: flipped }),
            formatRequestProof({ ...parsed, counter: parsed.counter + 1 }),
          ];
    for (const other of changed)
      expect(faultOf(agent().open(asked, other).caller).code).toBe("unauthenticated");
    for (const other of [
      { ...asked, payload: Buffer.from("Request") },
      { ...asked, subject: "agent.w1.m2.rpc" },
      { ...asked, reply: "_INBOX.elsewhere" },
    ]) {
      expect(faultOf(agent().open(other, proof).caller).code).toBe("unauthenticated");
    }
    expect(agent().open(asked, proof).caller).toMatchObject({ name: "caller" });
  };
  check();
  exchange();
  check();
});

test("a hello for one machine does not open another, and an answer of another is not believed", () => {
  const one = pair();
  const asked = one.message();
  const proven = one.sessions.prove({ workspace: "w1", machine: "other" }, asked);
  const { seal } = one.agent().open(asked, proven.proof);
  const answer = Buffer.from("answer");
  expect(proven.isAuthentic(seal(answer), answer)).toBe(false);
  expect(one.sessions.has({ workspace: "w1", machine: "other" })).toBe(false);
});

test("an answer that was changed, made up or meant for another request is not believed", () => {
  const { exchange, sessions, message, agent } = pair();
  for (const round of ["hello", "session"]) {
    const asked = message();
    const proven = sessions.prove(REF, asked);
    const { seal } = agent().open(asked, proven.proof);
    const answer = Buffer.from("answer");
    expect([round, proven.isAuthentic(seal(answer), Buffer.from("Answer"))]).toEqual([round, false]);
    for (const forged of ["", "a1 x", "w1 a b c d", "w1"])
      expect(proven.isAuthentic(forged, answer)).toBe(false);
    const other = exchange();
    expect(proven.isAuthentic(other.seal(answer), answer)).toBe(false);
    expect(proven.isAuthentic(seal(answer), answer)).toBe(true);
  }
});

test.each([
  [
    "another authority",
    (signer: Credentials) => mintCredentials(createSigningKey("account"), signer.agentAuthority),
  ],
])("a credential of %s is refused", (_what, change) => {
  const { exchange } = pair({ credentials: change });
  expect(faultOf(exchange().caller).message).toContain("another authority");
});

test("a credential that expired, is for another workspace, has no role or a foreign seed is refused", () => {
  const { authority, agentAuthority, agent, message } = pair();
  const refusal = (credentials: Credentials): string => {
    const asked = message();
    const sessions = createSessions({ credentials, now: Date.now, skewMs: () => 0 });
    return faultOf(agent().open(asked, sessions.prove(REF, asked).proof).caller).message;
  };
  const make = (fields: object): Credentials => mintCredentials(authority, agentAuthority.publicKey, fields);
  expect(refusal(make({ expiresMs: Date.now() - 1_000 }))).toMatch(/expired at .* \(it is .* here\)/);
  expect(refusal(make({ workspace: "w2" }))).toContain("another workspace");
  expect(refusal(make({ role: "agent" }))).toContain("no role");
  expect(refusal({ ...make({}), key: createSigningKey("user") })).toContain("not by the bearer");
});

test("a caller whose clock is an hour off is told both times, with the machine's signature", () => {
  const { exchange, setCallerSkew } = pair({ callerSkewMs: HOUR });
  const refused = exchange();
  expect(faultOf(refused.caller)).toMatchObject({ code: "expired", ran: "no" });
  expect(faultOf(refused.caller).message.match(/\d{4}-\d\d-\d\dT/g)).toHaveLength(2);
  expect(refused.isBelieved).toBe(true);
  setCallerSkew(0);
  expect(exchange().caller).toMatchObject({ name: "caller" });
});

test("a revoked caller is refused in its session and with a new hello", () => {
  const { exchange, revoked, credentials, sessions, agent } = pair();
  exchange();
  revoked.add(credentials.key.publicKey);
  expect(faultOf(exchange().caller).message).toContain("revoked");
  expect(agent().dropRevoked()).toEqual([credentials.key.publicKey]);
  sessions.drop(REF);
  expect(faultOf(exchange().caller).message).toContain("revoked");
});

test("a flood of hellos by one caller leaves another's session alone", () => {
  const { authority, agentAuthority, agent, message, exchange } = pair();
  exchange();
  const noisy = createSessions({
    credentials: mintCredentials(authority, agentAuthority.publicKey),
    now: Date.now,
    skewMs: () => 0,
  });
  for (let n = 0; n < 200; n++) {
    const asked = message();
    agent().open(asked, noisy.prove(REF, asked).proof);
  }
  expect(exchange().proven.proof).toMatch(/^s1 /);
  expect(exchange().caller).toMatchObject({ name: "caller" });
});

test("a replay window accepts each counter once, in any order within its size", () => {
  const window = createReplayWindow(8);
  expect([0, 2, 1, 5, 3].map((n) => window.accept(n))).toEqual([true, true, true, true, true]);
  expect([0, 2, 5].map((n) => window.accept(n))).toEqual([false, false, false]);
  expect(window.accept(4)).toBe(true);
  expect(window.accept(100)).toBe(true);
  expect([92, 93, 99, 100].map((n) => window.accept(n))).toEqual([false, true, true, false]);
  expect([-1, 1.5, Number.NaN, Infinity].map((n) => window.accept(n))).toEqual([false, false, false, false]);
});
