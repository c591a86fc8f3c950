import {
  answerMac,
  createEphemeralKey,
  type Envelope,
  type EphemeralKey,
  formatRequestProof,
  helloText,
  isSame,
  NO_SESSION,
  parseAnswerProof,
  requestMac,
  sessionKey,
  type SessionKey,
  welcomeText,
  type AnswerProof,
} from "../proto/authentic.js";
import { type Certificate, verifyCertificate } from "../proto/certificate.js";
import { isSignedBy } from "../proto/nkey.js";
import { formatMachineRef, type MachineRef } from "../proto/subjects.js";
import type { Credentials } from "./credentials.js";
import type { Proven } from "./rpc.js";

/** Our sessions with machines: the first request says hello, later ones carry a MAC. */
export interface Sessions {
  prove(ref: MachineRef, message: Envelope): Proven;
  /** The machine has forgotten our session: the next request says hello again. */
  drop(ref: MachineRef): void;
  has(ref: MachineRef): boolean;
}

interface Session {
  readonly id: string;
  readonly key: SessionKey;
  counter: number;
}

export interface SessionsOptions {
  readonly credentials: Credentials;
  readonly now: () => number;
  /** The machine's clock minus ours. */
  readonly skewMs: (machine: string) => number;
}

export const createSessions = ({ credentials, now, skewMs }: SessionsOptions): Sessions => {
  const { certificate, key, agentAuthority } = credentials;
  const sessions = new Map<string, Session>();
  /** The certificates of machines that were verified, by machine. */
  const verified = new Map<string, Certificate>();

  const machineCertificate = (ref: MachineRef, jwt: string): Certificate | undefined => {
    const machine = formatMachineRef(ref);
    const known = verified.get(machine);
    if (known?.jwt === jwt && known.expiresMs > now()) return known;
    try {
      const found = verifyCertificate(jwt, { authority: agentAuthority, nowMs: now() });
      const isIt = found.role === "agent" && found.workspace === ref.workspace && found.name === ref.machine;
      if (!isIt) return undefined;
      verified.set(machine, found);
      return found;
    } catch {
      return undefined;
    }
  };

  /** Is this answer signed by the machine we asked, and about the request we sent? */
  const isWelcome = (
    ref: MachineRef,
    welcome: AnswerProof & { kind: "welcome" },
    mark: string,
    payload: Uint8Array,
  ): Certificate | undefined => {
    const machine = machineCertificate(ref, welcome.jwt);
    if (machine === undefined) return undefined;
    const { sessionId, ephemeral } = welcome;
    const text = welcomeText({ proof: mark, sessionId, ephemeral, payload });
    return isSignedBy(machine.publicKey, text, Buffer.from(welcome.signature, "base64url"))
      ? machine
      : undefined;
  };

  const begin = (
    ref: MachineRef,
    welcome: AnswerProof & { kind: "welcome" },
    ephemeral: EphemeralKey,
    machine: Certificate,
  ): void => {
    const secret = sessionKey(ephemeral.shared(welcome.ephemeral), {
      sessionId: welcome.sessionId,
      callerEphemeral: ephemeral.publicKey,
      agentEphemeral: welcome.ephemeral,
      callerKey: key.publicKey,
      agentKey: machine.publicKey,
    });
    sessions.set(formatMachineRef(ref), { id: welcome.sessionId, key: secret, counter: 0 });
  };

  const hello = (ref: MachineRef, message: Envelope): Proven => {
    const ephemeral = createEphemeralKey();
    const timeMs = Math.round(now() + skewMs(formatMachineRef(ref)));
    const { jwt } = certificate;
    const text = helloText(message, { jwt, ephemeral: ephemeral.publicKey, timeMs });
    const signature = key.sign(text).toString("base64url");
    return {
      proof: formatRequestProof({ kind: "hello", jwt, ephemeral: ephemeral.publicKey, timeMs, signature }),
      isAuthentic(text, payload) {
        const answer = parseAnswerProof(text);
        if (answer?.kind !== "welcome") return false;
        const machine = isWelcome(ref, answer, signature, payload);
        if (machine === undefined) return false;
        if (answer.sessionId !== NO_SESSION) begin(ref, answer, ephemeral, machine);
        return true;
      },
    };
  };

  const resume = (ref: MachineRef, session: Session, message: Envelope): Proven => {
    const counter = session.counter++;
    const mac = requestMac(session.key, counter, message);
    return {
      proof: formatRequestProof({ kind: "session", sessionId: session.id, counter, mac }),
      isAuthentic(text, payload) {
        const answer = parseAnswerProof(text);
        if (answer?.kind === "session") return isSame(answerMac(session.key, counter, payload), answer.mac);
        // A machine that has forgotten the session signs its refusal instead.
        return (
          answer?.kind === "welcome" &&
          answer.sessionId === NO_SESSION &&
          isWelcome(ref, answer, mac, payload) !== undefined
        );
      },
    };
  };

  return {
    prove(ref, message) {
      const session = sessions.get(formatMachineRef(ref));
      return session === undefined ? hello(ref, message) : resume(ref, session, message);
    },
    drop: (ref) => void sessions.delete(formatMachineRef(ref)),
    has: (ref) => sessions.has(formatMachineRef(ref)),
  };
};
