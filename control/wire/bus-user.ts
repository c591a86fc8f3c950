import { AuthorizationError, type ConnectionOptions } from "@nats-io/transport-node";
import { answerChallenge, type SigningKey } from "../../proto/nkey.js";

/** Who a connection is on the bus: what it shows, the key that it proves it with, where it listens. */
export interface BusUser {
  readonly jwt: string;
  readonly key: SigningKey;
  readonly inboxPrefix: string;
}

/** Where the bus is. */
export interface BusPlace {
  readonly servers: readonly string[];
  /** The certificate that the servers' certificates must be signed by, where it is a private one. */
  readonly caFile?: string | undefined;
}

/** What `connect` takes to be this user there; no user on a bus without credentials. */
export const busOptions = ({ servers, caFile }: BusPlace, user: BusUser | undefined): ConnectionOptions => ({
  servers: [...servers],
  noAsyncTraces: true,
  ...(caFile === undefined ? {} : { tls: { caFile } }),
  ...(user === undefined
    ? {}
    : {
        authenticator: answerChallenge(user.key, () => user.jwt),
        inboxPrefix: user.inboxPrefix,
      }),
});

/** Did the bus say that it does not know this user? */
export const isRefused = (error: unknown): boolean => error instanceof AuthorizationError;
