import type { Logger } from "pino";
import type { Certificate } from "../../proto/certificate.js";
import { FarhandError } from "../../proto/farhand-error.js";
import { readEnrolment, renewRequest } from "./exchange.js";
import type { IdentityKeeper } from "./keeper.js";

type Life = Pick<Certificate, "issuedMs" | "expiresMs">;

const FIRST_RETRY_MS = 5_000;
const MAX_RETRY_MS = 15 * 60_000;
const MIN_RETRY_MS = 500;
/** Share of its life within which machines that joined together renew one after the other. */
const SPREAD = 0.05;

/** When a JWT is to be renewed: from half of its life on. */
export const renewAtMs = ({ issuedMs, expiresMs }: Life, random: number): number =>
  issuedMs + (expiresMs - issuedMs) * (0.5 + SPREAD * random);

/** The delay after so many failures: growing, but with several tries left before the JWT expires. */
export const retryDelayMs = (failures: number, leftMs: number): number =>
  Math.max(MIN_RETRY_MS, Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS, leftMs / 8));

/**
 * How long to wait with the next renewal of a JWT that has just been got. Where the clock here is
 * so far ahead that the time has come already, asking again and again would not change that.
 */
export const nextRenewalMs = (life: Life, nowMs: number, random: number): number =>
  Math.max(renewAtMs(life, random) - nowMs, (life.expiresMs - life.issuedMs) / 8);

/** Asks the control plane's renew service; undefined when it did not answer. */
export type AskRenew = (request: Uint8Array) => Promise<Uint8Array | undefined>;

/** Gets new JWTs and keeps them. */
export const renewIdentity = async (keeper: IdentityKeeper, ask: AskRenew, nowMs: number): Promise<void> => {
  const { ref, key } = keeper;
  const answer = await ask(renewRequest(ref, key, nowMs));
  if (answer === undefined) {
    throw new FarhandError("control_unavailable", "the control plane does not answer");
  }
  keeper.renewed(readEnrolment("renew", answer, { ref, publicKey: key.publicKey }));
};

export interface Renewal {
  stop(): void;
}

/** Timers stand still while a laptop sleeps, so that the clock must be looked at now and then. */
const LOOK_MS = 30_000;

/** Renews the JWT from half of its life on, for as long as the agent runs. */
export const startRenewal = (options: {
  readonly keeper: IdentityKeeper;
  readonly ask: AskRenew;
  /** Goes over to the new JWT, without dropping what runs. */
  readonly swap: () => Promise<void>;
  readonly isConnected: () => boolean;
  readonly now: () => number;
  readonly log: Logger;
  readonly random?: () => number;
}): Renewal => {
  const { keeper, ask, swap, isConnected, now, log, random = Math.random } = options;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let dueMs = renewAtMs(keeper.certificate, random());
  let seenJwt = keeper.current.jwt;

  const renew = async (): Promise<void> => {
    try {
      await renewIdentity(keeper, ask, now());
      await swap();
    } catch (error) {
      failures++;
      seenJwt = keeper.current.jwt;
      const leftMs = keeper.certificate.expiresMs - now();
      dueMs = now() + retryDelayMs(failures, leftMs);
      log.warn({ err: error, leftMs }, "could not renew this machine's credential; trying again");
      return;
    }
    failures = 0;
    seenJwt = keeper.current.jwt;
    const { expiresMs } = keeper.certificate;
    dueMs = now() + nextRenewalMs(keeper.certificate, now(), random());
    log.info({ expires: new Date(expiresMs).toISOString() }, "renewed this machine's credential");
  };

  const look = async (): Promise<void> => {
    // It was renewed on the way to a connection.
    if (seenJwt !== keeper.current.jwt) {
      seenJwt = keeper.current.jwt;
      dueMs = now() + nextRenewalMs(keeper.certificate, now(), random());
    }
    if (now() >= dueMs && isConnected()) await renew();
    schedule();
  };

  const schedule = (): void => {
    if (isStopped) return;
    const waitMs = Math.min(LOOK_MS, Math.max(MIN_RETRY_MS, dueMs - now()));
    timer = setTimeout(() => void look(), waitMs);
  };
  schedule();
  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
};
