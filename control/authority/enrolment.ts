import type { Enrolment } from "../../proto/gen/identity.js";
import type { MachineRef } from "../../proto/subjects.js";
import type { Authority } from "./authority.js";
import { mintAgent, mintRenewal } from "./mint.js";

/** What a machine serves with for a while, and what it renews that with. */
export const enrolmentOf = (
  { keys, agentJwtMs, now }: Authority,
  ref: MachineRef,
  publicKey: string,
): Enrolment => {
  const nowMs = now();
  const user = { ...ref, publicKey, nowMs };
  return {
    ...ref,
    jwt: mintAgent(keys, { ...user, expiresMs: nowMs + agentJwtMs }),
    renewalJwt: mintRenewal(keys, user),
    controlTimeMs: BigInt(nowMs),
  };
};
