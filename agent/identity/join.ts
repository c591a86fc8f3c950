import { FarhandError } from "../../proto/farhand-error.js";
import type { JoinToken } from "../../proto/join-token.js";
import { createSigningKey, signingKeyFromSeed, type SigningKey } from "../../proto/nkey.js";
import type { MachineRef } from "../../proto/subjects.js";
import { readEnrolment, redeemRequest } from "./exchange.js";
import type { Identity } from "./identity.js";

export interface JoinOptions {
  readonly token: JoinToken;
  readonly ref: MachineRef;
  /** Take the name over from a machine that has it. */
  readonly replace: boolean;
  readonly hostname: string;
  readonly now: () => number;
  /** Asks the redeem service with the token's own credential. */
  readonly ask: (request: Uint8Array, tokenKey: SigningKey) => Promise<Uint8Array>;
}

export interface Joined {
  readonly identity: Identity;
  /** How far the control plane's clock is ahead of the one here. */
  readonly clockAheadMs: number;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** What a failure to get on the bus with a token means, in one sentence. */
export const joinFault = (thrown: unknown, { expiresMs }: Pick<JoinToken, "expiresMs">, nowMs: number) => {
  const error = FarhandError.from(thrown);
  const isNoPlane = error.code === "unauthenticated" || error.code === "control_unavailable";
  if (isNoPlane && expiresMs <= nowMs) {
    return new FarhandError(
      "unauthenticated",
      `the join token expired at ${iso(expiresMs)} (by the clock of this machine it is ${iso(nowMs)})`,
      { cause: thrown, advice: "create a new one with farhand token create; if the clock is wrong, set it" },
    );
  }
  if (error.code === "unauthenticated") {
    return new FarhandError(
      "unauthenticated",
      `the bus refuses the join token: it was revoked, or has expired by the clock of the bus (it is ${iso(nowMs)} here)`,
      { cause: thrown, advice: "create a new one with farhand token create; if the clock is wrong, set it" },
    );
  }
  return error;
};

/**
 * Redeems a token. The key is made here, and only its public half leaves; nothing is written.
 * The bus decides whether the token has expired, since the clock here may be the wrong one.
 */
export const join = async (options: JoinOptions): Promise<Joined> => {
  const { token, ref, replace, hostname, now } = options;
  const key = createSigningKey("user");
  const tokenKey = signingKeyFromSeed(token.seed);
  const nowMs = now();
  const request = redeemRequest({ ref, key, tokenKey, replace, hostname, nowMs });
  let answer: Uint8Array;
  try {
    answer = await options.ask(request, tokenKey);
  } catch (error) {
    throw joinFault(error, token, nowMs);
  }
  const enrolment = readEnrolment("redeem", answer, { ref, publicKey: key.publicKey });
  return {
    identity: {
      ...ref,
      servers: token.servers,
      ca: token.ca,
      seed: key.seed,
      jwt: enrolment.jwt,
      renewalJwt: enrolment.renewalJwt,
      authority: token.authority,
      joinedMs: nowMs,
    },
    clockAheadMs: Number(enrolment.controlTimeMs) - now(),
  };
};
