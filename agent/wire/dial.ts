import {
  type Authenticator,
  AuthorizationError,
  connect,
  type ConnectionOptions,
  credsAuthenticator,
  type NatsConnection,
  NoRespondersError,
  RequestError,
  TimeoutError,
  UserAuthenticationExpiredError,
} from "@nats-io/transport-node";
import { answerChallenge, signingKeyFromSeed } from "../../proto/nkey.js";

/** By what the bus lets a connection in. */
export type BusCredential =
  | { readonly kind: "jwt"; readonly jwt: () => string; readonly seed: string }
  /** The text of a NATS creds file. */
  | { readonly kind: "creds"; readonly creds: string };

/** Where the bus is and how to get in. */
export interface BusAccess {
  readonly servers: readonly string[];
  /** The certificate that the servers' certificates must be signed by, where it is a private one. */
  readonly ca?: string | undefined;
  /** None for a bus that asks for none. */
  readonly credential?: BusCredential | undefined;
  readonly name: string;
  readonly inboxPrefix: string;
}

const authenticatorOf = (credential: BusCredential): Authenticator =>
  credential.kind === "jwt"
    ? answerChallenge(signingKeyFromSeed(credential.seed), credential.jwt)
    : credsAuthenticator(Buffer.from(credential.creds));

/**
 * With the option set, a server that says it has no TLS is not used; without, the client library
 * would go on in the clear, also where somebody between said so.
 */
const tlsOf = ({ ca, servers }: BusAccess): Pick<ConnectionOptions, "tls"> => {
  if (ca !== undefined) return { tls: { ca } };
  return servers.some((server) => /^(tls|wss):/.test(server)) ? { tls: {} } : {};
};

/** Connects to one of the servers, or throws what the last of them said. */
export const dial = (access: BusAccess, more: ConnectionOptions = {}): Promise<NatsConnection> => {
  const { servers, credential, name, inboxPrefix } = access;
  return connect({
    servers: [...servers],
    name,
    inboxPrefix,
    noAsyncTraces: true,
    ignoreAuthErrorAbort: true,
    ...(credential === undefined ? {} : { authenticator: authenticatorOf(credential) }),
    ...tlsOf(access),
    ...more,
  });
};

/** Did the bus say that it does not take the credential? */
export const isRefusal = (error: unknown): boolean =>
  error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;

export const isNoResponder = (error: unknown): boolean =>
  error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());

/** Nobody listens, or nobody answered in time. */
export const isNoAnswer = (error: unknown): boolean =>
  isNoResponder(error) ||
  error instanceof TimeoutError ||
  (error instanceof RequestError && error.cause instanceof TimeoutError);
