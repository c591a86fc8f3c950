import {
  type ConnectionOptions,
  connect,
  createInbox,
  type Msg,
  type NatsConnection,
} from "@nats-io/transport-node";
import type { ControlRpc, Exchange, Outcome } from "../rpc.js";

export interface NatsRpcOptions {
  readonly servers: readonly string[];
  readonly name: string;
}

export interface NatsRpc extends ControlRpc {
  close(): Promise<void>;
}

interface Pending {
  settle(outcome: Outcome): void;
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

const connectionOptions = ({ servers, name }: NatsRpcOptions, delay: () => number): ConnectionOptions => ({
  servers: [...servers],
  name,
  noAsyncTraces: true,
  timeout: CONNECT_MS,
  maxReconnectAttempts: -1,
  reconnectDelayHandler: delay,
  pingInterval: 10_000,
  maxPingOut: 2,
});

const toOutcome = (message: Msg): Outcome =>
  message.data.length === 0 && message.headers?.code === NO_RESPONDERS
    ? { kind: "no_responders" }
    : { kind: "reply", payload: message.data };

const openSession = async (options: NatsRpcOptions): Promise<Session> => {
  const delay = reconnectDelay();
  const nc = await connect(connectionOptions(options, delay.next));
  const inbox = `${createInbox()}.`;
  const session: Session = { nc, inbox, pending: new Map(), isUp: true };
  nc.subscribe(`${inbox}*`, {
    callback: (error, message) => {
      if (error === null)
        session.pending.get(message.subject.slice(inbox.length))?.settle(toOutcome(message));
    },
  });
  const watch = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect" || status.type === "close") {
        session.isUp = false;
        for (const waiting of session.pending.values()) waiting.settle({ kind: "link_lost" });
      } else if (status.type === "reconnect") {
        session.isUp = true;
        delay.reset();
      }
    }
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

/** Lazy and memoized: nothing dials until the first exchange, and a failed dial is tried again by the next. */
export const createNatsRpc = (options: NatsRpcOptions): NatsRpc => {
  let opening: Promise<Session> | undefined;
  let isClosed = false;
  let count = 0;

  const session = (): Promise<Session> => {
    opening ??= openSession(options).catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };

  const send = (
    { nc, inbox, pending }: Session,
    { subject, payload, timeoutMs, signal }: Exchange,
  ): Promise<Outcome> =>
    new Promise((resolve, reject) => {
      const token = (count++).toString(36);
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
        void linkAnswers(nc).then((linkIsUp) => resolve({ kind: "timeout", linkIsUp }));
      }, timeoutMs);
      signal?.addEventListener("abort", onAbort, { once: true });
      pending.set(token, { settle });
      try {
        nc.publish(subject, payload, { reply: inbox + token });
      } catch (error) {
        settle({ kind: "unavailable", because: error instanceof Error ? error.message : String(error) });
      }
    });

  return {
    async exchange(exchange) {
      exchange.signal?.throwIfAborted();
      if (isClosed) return { kind: "unavailable", because: "this client was closed" };
      let open: Session;
      try {
        open = await session();
      } catch (error) {
        return { kind: "unavailable", because: error instanceof Error ? error.message : String(error) };
      }
      if (!open.isUp) return { kind: "unavailable", because: "the connection was lost; trying to reconnect" };
      const limit = open.nc.info?.max_payload ?? Infinity;
      if (exchange.payload.length > limit) return { kind: "too_large", limit };
      return send(open, exchange);
    },
    async close() {
      isClosed = true;
      const open = await opening?.catch(() => undefined);
      await open?.nc.close();
    },
  };
};
