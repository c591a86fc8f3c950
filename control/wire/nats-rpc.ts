import {
  AuthorizationError,
  type ConnectionOptions,
  connect,
  createInbox,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  UserAuthenticationExpiredError,
} from "@nats-io/transport-node";
import { encodeAuthHeader, proofIn } from "../../proto/authentic.js";
import { LIMITS } from "../../proto/limits.js";
import { answerChallenge, type SigningKey } from "../../proto/nkey.js";
import { inboxPrefix } from "../../proto/subjects.js";
import type { ControlRpc, Exchange, Outcome } from "../rpc.js";

export interface NatsRpcOptions {
  readonly servers: readonly string[];
  readonly name: string;
  /** Absent for a bus that asks for none. */
  readonly credentials?:
    { readonly certificate: { readonly jwt: string }; readonly key: SigningKey } | undefined;
  /** A file with the certificates that the servers' are signed by, where they are private ones. */
  readonly caFile?: string | undefined;
}

export interface NatsRpc extends ControlRpc {
  close(): Promise<void>;
}

interface Pending {
  receive(message: Msg): void;
  linkLost(): void;
}

/** A connection with one inbox for all replies, so that a dropped link fails what waits at once. */
interface Session {
  readonly nc: NatsConnection;
  readonly inbox: string;
  readonly pending: Map<string, Pending>;
  isUp: boolean;
}

const CONNECT_MS = 5_000;
const PROBE_MS = 500;
const NO_RESPONDERS = 503;
const FIRST_RECONNECT_MS = 50;
const MAX_RECONNECT_MS = 2_000;

/** Quick at first, since a person or a request waits; then slower, with jitter. */
const reconnectDelay = () => {
  let attempt = 0;
  return {
    next: (): number =>
      Math.min(MAX_RECONNECT_MS, FIRST_RECONNECT_MS * 2 ** attempt++) * (0.5 + Math.random() / 2),
    reset: (): void => void (attempt = 0),
  };
};

const connectionOptions = (options: NatsRpcOptions, delay: () => number): ConnectionOptions => {
  const { servers, name, credentials, caFile } = options;
  return {
    servers: [...servers],
    name,
    ...(caFile === undefined ? {} : { tls: { caFile } }),
    ...(credentials === undefined
      ? {}
      : { authenticator: answerChallenge(credentials.key, () => credentials.certificate.jwt) }),
    noAsyncTraces: true,
    timeout: CONNECT_MS,
    maxReconnectAttempts: -1,
    reconnectDelayHandler: delay,
    pingInterval: 10_000,
    maxPingOut: 2,
  };
};

const isNoResponders = ({ data, headers: header }: Msg): boolean =>
  data.length === 0 && header?.code === NO_RESPONDERS;

const isRefusal = (error: unknown): boolean =>
  error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;

const proofHeader = (proof: string): MsgHdrs =>
  Object.assign(headers(), { encode: () => encodeAuthHeader(proof) });

const openSession = async (options: NatsRpcOptions, onClosed: () => void): Promise<Session> => {
  const delay = reconnectDelay();
  const nc = await connect(connectionOptions(options, delay.next));
  const own = options.credentials && inboxPrefix.control(options.credentials.key.publicKey);
  const inbox = `${createInbox(own)}.`;
  const session: Session = { nc, inbox, pending: new Map(), isUp: true };
  nc.subscribe(`${inbox}*`, {
    callback: (error, message) => {
      if (error === null) session.pending.get(message.subject.slice(inbox.length))?.receive(message);
    },
  });
  const watch = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect" || status.type === "close") {
        session.isUp = false;
        for (const waiting of session.pending.values()) waiting.linkLost();
      } else if (status.type === "reconnect") {
        session.isUp = true;
        delay.reset();
      }
    }
    // A connection that the server ended for good, as after a revocation, is not used again.
    onClosed();
  };
  void watch();
  return session;
};

/** Does the server still answer? A timeout through a dead link must not be blamed on the machine. */
const linkAnswers = async (nc: NatsConnection): Promise<boolean> => {
  const answered = nc.rtt().then(
    () => true,
    () => false,
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, PROBE_MS, false)));
  return Promise.race([answered, late]).finally(() => clearTimeout(timer));
};

/** Sends one message and waits for its answer, its time or the end of the link. */
const send = ({ nc, inbox, pending }: Session, token: string, exchange: Exchange): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const { subject, payload, timeoutMs, signal } = exchange;
    const reply = inbox + token;
    const proven = exchange.prove?.(reply);
    let forged = 0;
    const finish = (): void => {
      clearTimeout(timer);
      pending.delete(token);
      signal?.removeEventListener("abort", onAbort);
    };
    const settle = (outcome: Outcome): void => {
      finish();
      resolve(outcome);
    };
    const onAbort = (): void => {
      finish();
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      finish();
      void linkAnswers(nc).then((linkIsUp) => resolve({ kind: "timeout", linkIsUp, forged }));
    }, timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    pending.set(token, {
      receive(message) {
        if (isNoResponders(message)) return settle({ kind: "no_responders" });
        const proof = proven === undefined ? "" : proofIn(message);
        // Whoever forges an answer must not be able to end the wait for the true one.
        if (proven?.isAuthentic(proof, message.data) === false) return void forged++;
        settle({ kind: "reply", payload: message.data });
      },
      linkLost: () => settle({ kind: "link_lost" }),
    });
    try {
      nc.publish(subject, payload, {
        reply,
        ...(proven === undefined ? {} : { headers: proofHeader(proven.proof) }),
      });
    } catch (error) {
      settle({ kind: "unavailable", because: error instanceof Error ? error.message : String(error) });
    }
  });

/** Lazy and memoized: nothing dials until the first exchange, and a failed dial is tried again by the next. */
export const createNatsRpc = (options: NatsRpcOptions): NatsRpc => {
  let opening: Promise<Session> | undefined;
  let isClosed = false;
  let count = 0;
  const forget = (): void => void (opening = undefined);

  const session = (): Promise<Session> => {
    opening ??= openSession(options, forget).catch((error: unknown) => {
      forget();
      throw error;
    });
    return opening;
  };

  return {
    async exchange(exchange) {
      exchange.signal?.throwIfAborted();
      if (isClosed) return { kind: "unavailable", because: "this client was closed" };
      let open: Session;
      try {
        open = await session();
      } catch (error) {
        const because = error instanceof Error ? error.message : String(error);
        return { kind: isRefusal(error) ? "refused" : "unavailable", because };
      }
      if (!open.isUp) return { kind: "unavailable", because: "the connection was lost; trying to reconnect" };
      const room = exchange.prove === undefined ? 0 : LIMITS.proofBytes;
      const limit = (open.nc.info?.max_payload ?? Infinity) - room;
      if (exchange.payload.length > limit) return { kind: "too_large", limit };
      return send(open, (count++).toString(36), exchange);
    },
    async close() {
      isClosed = true;
      const open = await opening?.catch(() => undefined);
      await open?.nc.close();
    },
  };
};
