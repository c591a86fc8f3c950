import { atEnd } from "./at-end.js";
import { connect, createInbox, type NatsConnection } from "@nats-io/transport-node";

import { ControlRequest, ControlResponse } from "../../proto/gen/envelope.js";

/** A connection without our client code, for whoever does not play by the rules. */
export const rawConnection = async (url: string): Promise<NatsConnection> => {
  const nc = await connect({ servers: url });
  atEnd(() => nc.close());
  return nc;
};

/** A well-formed request with a deadline ten seconds ahead, changed as the test wants. */
export const rawRequest = (fields: Partial<ControlRequest>): Uint8Array =>
  ControlRequest.encode(
    ControlRequest.fromPartial({
      requestId: createInbox(),
      deadlineMs: BigInt(Date.now() + 10_000),
      issuedMs: BigInt(Date.now()),
      ...fields,
    }),
  ).finish();

export const ask = async (
  nc: NatsConnection,
  subject: string,
  payload: Uint8Array,
): Promise<ControlResponse> =>
  ControlResponse.decode((await nc.request(subject, payload, { timeout: 5_000 })).data);

/** The error of an answer, or undefined. */
export const errorOf = ({ result }: ControlResponse) =>
  result?.$case === "error" ? result.value : undefined;
