import type { NatsConnection } from "@nats-io/transport-node";
import { setTimeout as sleep } from "node:timers/promises";
import { FarhandError } from "../../proto/farhand-error.js";
import { NO_RESPONDER_RETRIES_MS } from "../../proto/limits.js";
import { type BusAccess, dial, isNoAnswer, isNoResponder, isRefusal } from "./dial.js";

const CONNECT_MS = 5_000;
const ANSWER_MS = 10_000;

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const unreachable = (access: BusAccess, error: unknown): FarhandError => {
  if (error instanceof FarhandError) return error;
  if (isRefusal(error)) {
    return new FarhandError("unauthenticated", "the bus refuses the credential", { cause: error });
  }
  return new FarhandError(
    "control_unavailable",
    `no server can be reached at ${access.servers.join(", ")}: ${reasonOf(error)}`,
    { cause: error, advice: "check the network of this machine, and that the server runs and is reachable" },
  );
};

/** A healthy cluster may know of no responder for a moment. */
const request = async (
  nc: NatsConnection,
  subject: string,
  data: Uint8Array,
  [retryMs, ...laterMs]: readonly number[] = NO_RESPONDER_RETRIES_MS,
): Promise<Uint8Array> => {
  try {
    return (await nc.request(subject, data, { timeout: ANSWER_MS })).data;
  } catch (error) {
    if (retryMs === undefined || !isNoResponder(error)) throw error;
    await sleep(retryMs);
    return request(nc, subject, data, laterMs);
  }
};

/**
 * Asks a service of the control plane one question over a connection of its own.
 * `unauthenticated` when the bus does not take the credential.
 */
export const askPlane = async (access: BusAccess, subject: string, data: Uint8Array): Promise<Uint8Array> => {
  const nc = await dial(access, { reconnect: false, timeout: CONNECT_MS }).catch((error: unknown) => {
    throw unreachable(access, error);
  });
  try {
    return await request(nc, subject, data);
  } catch (error) {
    if (!isNoAnswer(error)) throw unreachable(access, error);
    throw new FarhandError("control_unavailable", "the control plane does not answer", {
      cause: error,
      advice: "check that it runs (farhand up), and try again",
    });
  } finally {
    await nc.close();
  }
};
