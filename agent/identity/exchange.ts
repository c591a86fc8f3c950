import { readCertificate } from "../../proto/certificate.js";
import { FarhandError } from "../../proto/farhand-error.js";
import {
  type Enrolment,
  RedeemReply,
  RedeemRequest,
  RenewReply,
  RenewRequest,
} from "../../proto/gen/identity.js";
import { redeemText, renewText } from "../../proto/identity.js";
import type { SigningKey } from "../../proto/nkey.js";
import type { MachineRef } from "../../proto/subjects.js";

/** What a machine and the control plane say to each other about its identity. */

export const redeemRequest = (options: {
  readonly ref: MachineRef;
  readonly key: SigningKey;
  readonly tokenKey: SigningKey;
  readonly replace: boolean;
  readonly hostname: string;
  readonly nowMs: number;
}): Uint8Array => {
  const { ref, key, tokenKey, replace, hostname, nowMs } = options;
  const facts = {
    machine: ref.machine,
    publicKey: key.publicKey,
    timeMs: BigInt(nowMs),
    token: tokenKey.publicKey,
    replace,
  };
  const text = redeemText(ref.workspace, facts);
  return RedeemRequest.encode({
    ...facts,
    hostname,
    tokenSignature: tokenKey.sign(text),
    machineSignature: key.sign(text),
  }).finish();
};

export const renewRequest = (ref: MachineRef, key: SigningKey, nowMs: number): Uint8Array => {
  const facts = { machine: ref.machine, publicKey: key.publicKey, timeMs: BigInt(nowMs) };
  return RenewRequest.encode({ ...facts, signature: key.sign(renewText(ref.workspace, facts)) }).finish();
};

/** Throws unless both JWTs are what this machine asked for. */
const checkEnrolment = (enrolment: Enrolment, ref: MachineRef, publicKey: string): Enrolment => {
  const wrong = (what: string): FarhandError =>
    new FarhandError("protocol", `the control plane answered with ${what}, and nothing was changed here`, {
      advice: "whoever runs the control plane must see to it: it, or the bus, is not what it should be",
    });
  if (enrolment.workspace !== ref.workspace || enrolment.machine !== ref.machine) {
    throw wrong("an identity of another machine");
  }
  for (const jwt of [enrolment.jwt, enrolment.renewalJwt]) {
    if (readCertificate(jwt).publicKey !== publicKey) throw wrong("a credential for another key");
  }
  const { name, workspace } = readCertificate(enrolment.jwt);
  if (name !== ref.machine || workspace !== ref.workspace) throw wrong("a credential of another machine");
  return enrolment;
};

/** The enrolment in a reply, or the control plane's own refusal. */
export const readEnrolment = (
  kind: "redeem" | "renew",
  data: Uint8Array,
  { ref, publicKey }: { ref: MachineRef; publicKey: string },
): Enrolment => {
  const { outcome } = (kind === "redeem" ? RedeemReply : RenewReply).decode(data);
  if (outcome === undefined) throw new FarhandError("protocol", "the control plane answered with nothing");
  if (outcome.$case === "error") {
    throw FarhandError.fromAgentError(outcome.value, { machine: ref.machine, requestId: "" });
  }
  return checkEnrolment(outcome.value, ref, publicKey);
};
