import { type Certificate, readCertificate } from "../../proto/certificate.js";
import type { Enrolment } from "../../proto/gen/identity.js";
import { signingKeyFromSeed, type SigningKey } from "../../proto/nkey.js";
import type { MachineRef } from "../../proto/subjects.js";
import { type Identity, writeIdentity } from "./identity.js";

/** The identity of the running agent: what changes of it is on disk before it is used. */
export interface IdentityKeeper {
  readonly ref: MachineRef;
  readonly key: SigningKey;
  readonly current: Identity;
  /** The JWT that the machine serves with, as it stands now. */
  readonly certificate: Certificate;
  renewed(enrolment: Pick<Enrolment, "jwt" | "renewalJwt">): void;
  revoked(nowMs: number): void;
}

export const keepIdentity = (stateDir: string, identity: Identity): IdentityKeeper => {
  let current = identity;
  let certificate = readCertificate(identity.jwt);
  const change = (next: Identity): void => {
    writeIdentity(stateDir, next);
    current = next;
    certificate = readCertificate(next.jwt);
  };
  return {
    ref: { workspace: identity.workspace, machine: identity.machine },
    key: signingKeyFromSeed(identity.seed),
    get current() {
      return current;
    },
    get certificate() {
      return certificate;
    },
    renewed: ({ jwt, renewalJwt }) => change({ ...current, jwt, renewalJwt }),
    revoked: (nowMs) => change({ ...current, revokedMs: nowMs }),
  };
};
