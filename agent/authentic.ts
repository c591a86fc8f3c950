import { randomBytes } from "node:crypto";
import {
  answerMac,
  createEphemeralKey,
  type Envelope,
  formatAnswerProof,
  helloText,
  isSame,
  NO_SESSION,
  parseRequestProof,
  proofMark,
  requestMac,
  type RequestProof,
  sessionKey,
  type SessionKey,
  welcomeText,
} from "../proto/authentic.js";
import { type Certificate, verifyCertificate } from "../proto/certificate.js";
import { FarhandError } from "../proto/farhand-error.js";
import { AUTHENTIC } from "../proto/limits.js";
import { isSignedBy, type SigningKey } from "../proto/nkey.js";
import type { Caller, Role } from "./call.js";
import type { Trust } from "./identity/trust.js";
import { createReplayWindow, type ReplayWindow } from "./replay-window.js";

/** Tells who sent a request, and proves the answer to them. */
export interface Authentic {
  open(message: Envelope, proof: string): Opened;
  /** Forgets what revoked callers had; returns their public keys. */
  dropRevoked(): string[];
}

export interface Opened {
  /** The verified caller, or why there is none. */
  readonly caller: Caller | FarhandError;
  /** The proof that goes with the answer. */
  seal(answer: Uint8Array): string;
}

export interface AuthenticOptions {
  readonly workspace: string;
  /** Pinned when the machine joined. */
  readonly authority: string;
  readonly key: SigningKey;
  /** The machine's own certificate, as it stands now. */
  readonly jwt: () => string;
  readonly trust: Trust;
  readonly now: () => number;
}

interface Session {
  readonly key: SessionKey;
  readonly certificate: Certificate;
  readonly caller: Caller;
  readonly window: ReplayWindow;
}

const unauthenticated = (message: string): FarhandError => new FarhandError("unauthenticated", message);

const ROLES: ReadonlySet<string> = new Set<Role>(["operator", "reader"]);
const isRole = (role: string): role is Role => ROLES.has(role);

/** Keeps the latest `limit` entries of a map, in order of their last use. */
const touch = <K, V>(map: Map<K, V>, key: K, value: V, limit: number): void => {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > limit && oldest !== undefined) map.delete(oldest);
};

export const createAuthentic = ({
  workspace,
  authority,
  key,
  jwt,
  trust,
  now,
}: AuthenticOptions): Authentic => {
  const sessions = new Map<string, Session>();
  /** Signatures of hellos within the time in which a copy would still be fresh. */
  const hellos = new Map<string, number>();
  const verified = new Map<string, Certificate>();

  const certificateOf = (text: string): Certificate => {
    const known = verified.get(text);
    const certificate =
      known !== undefined && known.expiresMs > now()
        ? known
        : verifyCertificate(text, { authority, nowMs: now() });
    touch(verified, text, certificate, AUTHENTIC.sessions);
    return certificate;
  };

  const callerOf = (certificate: Certificate): Caller => {
    const { name, role, publicKey, issuedMs, expiresMs } = certificate;
    if (certificate.workspace !== workspace)
      throw unauthenticated(`the credential ${name} is for another workspace`);
    if (!isRole(role))
      throw unauthenticated(`the credential ${name} has no role that may ask anything of a machine`);
    if (expiresMs <= now()) throw unauthenticated(`the credential ${name} has expired`);
    if (trust.isRevoked(publicKey, issuedMs)) throw unauthenticated(`the credential ${name} was revoked`);
    return { name, role, publicKey };
  };

  const checkFresh = (timeMs: number, signature: string): void => {
    const nowMs = now();
    if (!(Math.abs(timeMs - nowMs) <= AUTHENTIC.helloMs)) {
      const [theirs, ours] = [timeMs, nowMs].map((ms) =>
        Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString() : String(ms),
      );
      throw new FarhandError(
        "expired",
        `the caller's clock says ${theirs}, and this machine's ${ours}: the clocks differ too much`,
      );
    }
    for (const [old, at] of hellos) {
      if (at > nowMs - 2 * AUTHENTIC.helloMs) break;
      hellos.delete(old);
    }
    if (hellos.has(signature)) throw unauthenticated("this hello was used before");
    hellos.set(signature, nowMs);
  };

  const seal =
    (proof: RequestProof | undefined, sessionId: string, ephemeral: string) =>
    (answer: Uint8Array): string => {
      const mark = proof === undefined ? "" : proofMark(proof);
      const signature = key
        .sign(welcomeText({ proof: mark, sessionId, ephemeral, payload: answer }))
        .toString("base64url");
      return formatAnswerProof({ kind: "welcome", jwt: jwt(), sessionId, ephemeral, signature });
    };

  const openHello = (message: Envelope, hello: RequestProof & { kind: "hello" }): Opened => {
    const certificate = certificateOf(hello.jwt);
    const signature = Buffer.from(hello.signature, "base64url");
    if (!isSignedBy(certificate.publicKey, helloText(message, hello), signature)) {
      throw unauthenticated("the signature of the hello is not by the bearer of the credential");
    }
    const caller = callerOf(certificate);
    checkFresh(hello.timeMs, hello.signature);
    const ephemeral = createEphemeralKey();
    const sessionId = randomBytes(16).toString("base64url");
    const secret = sessionKey(ephemeral.shared(hello.ephemeral), {
      sessionId,
      callerEphemeral: hello.ephemeral,
      agentEphemeral: ephemeral.publicKey,
      callerKey: certificate.publicKey,
      agentKey: key.publicKey,
    });
    const mine = [...sessions].filter(([, session]) => session.caller.publicKey === caller.publicKey);
    const [oldest] = mine;
    if (mine.length >= AUTHENTIC.sessionsPerCaller && oldest !== undefined) sessions.delete(oldest[0]);
    touch(
      sessions,
      sessionId,
      { key: secret, certificate, caller, window: createReplayWindow() },
      AUTHENTIC.sessions,
    );
    return { caller, seal: seal(hello, sessionId, ephemeral.publicKey) };
  };

  const openSession = (message: Envelope, proof: RequestProof & { kind: "session" }): Opened => {
    const session = sessions.get(proof.sessionId);
    if (session === undefined)
      throw unauthenticated("this machine does not know the session; say hello again");
    if (!isSame(requestMac(session.key, proof.counter, message), proof.mac)) {
      throw unauthenticated("the request is not what its sender sealed");
    }
    // Only now: a forger must not be able to use up counters.
    if (!session.window.accept(proof.counter)) throw unauthenticated("this request was received before");
    const caller = callerOf(session.certificate);
    return {
      caller,
      seal: (answer) =>
        formatAnswerProof({ kind: "session", mac: answerMac(session.key, proof.counter, answer) }),
    };
  };

  return {
    open(message, text) {
      const proof = parseRequestProof(text);
      try {
        if (proof === undefined) throw unauthenticated("the request carries no proof of who sent it");
        return proof.kind === "hello" ? openHello(message, proof) : openSession(message, proof);
      } catch (error) {
        return { caller: FarhandError.from(error), seal: seal(proof, NO_SESSION, NO_SESSION) };
      }
    },
    dropRevoked() {
      const dropped = new Set<string>();
      for (const [id, { certificate }] of sessions) {
        if (!trust.isRevoked(certificate.publicKey, certificate.issuedMs)) continue;
        sessions.delete(id);
        dropped.add(certificate.publicKey);
      }
      return [...dropped];
    },
  };
};

const ANYBODY: Caller = { name: "bus", role: "operator", publicKey: "" };

/** Where policy leaves it to the bus who may reach the machine. */
export const TRUST_THE_BUS: Authentic = {
  open: () => ({ caller: ANYBODY, seal: () => "" }),
  dropRevoked: () => [],
};
