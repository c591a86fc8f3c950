import {
  type Authenticator,
  AuthorizationError,
  connect,
  type ConnectionOptions,
  credsAuthenticator,
  jwtAuthenticator,
  type NatsConnection,
  NoRespondersError,
  RequestError,
  TimeoutError,
  UserAuthenticationExpiredError,
} from "@nats-io/transport-node";
import { FarhandError } from "../../proto/farhand-error.js";

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
    ? jwtAuthenticator(credential.jwt, Buffer.from(credential.seed))
    : credsAuthenticator(Buffer.from(credential.creds));

const wantsTls = ({ ca, servers }: BusAccess): boolean =>
  ca !== undefined || servers.some((server) => /^(tls|wss):/.test(server));

/**
 * Throws when the connection is in the clear though it must not be: the client library goes on
 * without TLS where a server, or somebody between, says that it has none.
 */
export const checkEncrypted = (nc: NatsConnection, access: BusAccess): void => {
  const { tls_required: required, tls_available: available } = nc.info ?? {};
  if (!wantsTls(access) || required === true || available === true) return;
  throw new FarhandError("unauthenticated", `${nc.getServer()} offers no TLS, which this machine insists on`);
};

/** Connects to one of the servers, or throws what the last of them said. */
export const dial = async (access: BusAccess, more: ConnectionOptions = {}): Promise<NatsConnection> => {
  const { servers, ca, credential, name, inboxPrefix } = access;
  const nc = await connect({
    servers: [...servers],
    name,
    inboxPrefix,
    noAsyncTraces: true,
    ignoreAuthErrorAbort: true,
    ...(credential === undefined ? {} : { authenticator: authenticatorOf(credential) }),
    ...(ca === undefined ? {} : { tls: { ca } }),
    ...more,
  });
  try {
    checkEncrypted(nc, access);
  } catch (error) {
    await nc.close();
    throw error;
  }
  return nc;
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
