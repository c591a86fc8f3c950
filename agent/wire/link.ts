import {
  type ConnectionOptions,
  type Msg,
  type NatsConnection,
  connect,
  headers,
  NoRespondersError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";
import type { Logger } from "pino";
import { AUTH_HEADER } from "../../proto/authentic.js";
import { createBackoff } from "./backoff.js";

/** A message from the bus. */
export interface WireMessage {
  readonly data: Uint8Array;
  readonly subject: string;
  /** Empty when no answer is wanted. */
  readonly reply: string;
  /** What the sender proves about itself; empty for nothing. */
  readonly proof: string;
  /** Answers over the connection that the message came by, which alone may. */
  respond(data: Uint8Array, proof?: string): void;
}

/** The agent's connection to the bus, kept for ever. */
export interface Link {
  readonly server: string;
  readonly maxPayload: number;
  subscribe(
    subject: string,
    options: { queue?: string },
    onMessage: (message: WireMessage) => void | Promise<void>,
  ): () => void;
  publish(subject: string, data: Uint8Array): void;
  /** The first reply, or undefined when nobody listens or nobody answered in time. */
  ask(subject: string, data: Uint8Array, timeoutMs: number): Promise<Uint8Array | undefined>;
  /** Resolves when the server has everything that was published before. */
  flush(): Promise<void>;
  isConnected(): boolean;
  close(): Promise<void>;
}

export interface LinkOptions {
  readonly servers: readonly string[];
  readonly name: string;
  readonly inboxPrefix: string;
  readonly log: Logger;
  onDisconnect(): void;
  onReconnect(): void;
}

const MIN_DELAY_MS = 250;
const MAX_DELAY_MS = 30_000;

const connectionOptions = (
  { servers, name, inboxPrefix }: LinkOptions,
  delay: () => number,
): ConnectionOptions => ({
  servers: [...servers],
  name,
  inboxPrefix,
  noAsyncTraces: true,
  maxReconnectAttempts: -1,
  waitOnFirstConnect: true,
  ignoreAuthErrorAbort: true,
  reconnectDelayHandler: delay,
  pingInterval: 10_000,
  maxPingOut: 2,
});

const isNoAnswer = (error: unknown): boolean =>
  error instanceof NoRespondersError ||
  error instanceof TimeoutError ||
  (error instanceof RequestError && (error.isNoResponders() || error.cause instanceof TimeoutError));

const toWireMessage = (nc: NatsConnection, message: Msg): WireMessage => ({
  data: message.data,
  subject: message.subject,
  reply: message.reply ?? "",
  proof: message.headers?.get(AUTH_HEADER) ?? "",
  respond(data, proof) {
    if (message.reply === undefined || nc.isClosed()) return;
    if (proof === undefined) return nc.publish(message.reply, data);
    const header = headers();
    header.set(AUTH_HEADER, proof);
    nc.publish(message.reply, data, { headers: header });
  },
});

export const openLink = async (options: LinkOptions): Promise<Link> => {
  const { log } = options;
  const backoff = createBackoff({ minMs: MIN_DELAY_MS, maxMs: MAX_DELAY_MS });
  const nc: NatsConnection = await connect(connectionOptions(options, () => backoff.next()));
  let isConnected = true;
  const watch = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect" && isConnected) {
        isConnected = false;
        log.warn({ server: status.server }, "lost the bus; trying again until it is back");
        options.onDisconnect();
      } else if (status.type === "reconnect") {
        isConnected = true;
        backoff.reset();
        log.info({ server: status.server }, "back on the bus");
        options.onReconnect();
      } else if (status.type === "error") {
        log.error({ err: status.error }, "the bus reported an error");
      }
    }
  };
  void watch();

  const receive = (
    onMessage: (message: WireMessage) => void | Promise<void>,
    error: Error | null,
    message: Msg,
  ): void => {
    if (error !== null) return log.error({ err: error }, "a subscription was refused");
    // A callback that throws would leave the connection deaf.
    Promise.resolve(toWireMessage(nc, message))
      .then(onMessage)
      .catch((thrown: unknown) => log.error({ err: thrown }, "a message could not be handled"));
  };

  return {
    get server() {
      return nc.getServer();
    },
    get maxPayload() {
      return nc.info?.max_payload ?? 1024 * 1024;
    },
    subscribe(subject, { queue }, onMessage) {
      const subscription = nc.subscribe(subject, {
        ...(queue === undefined ? {} : { queue }),
        callback: (error, message) => receive(onMessage, error, message),
      });
      return () => subscription.unsubscribe();
    },
    publish(subject, data) {
      if (!nc.isClosed()) nc.publish(subject, data);
    },
    async ask(subject, data, timeoutMs) {
      try {
        return (await nc.request(subject, data, { timeout: timeoutMs })).data;
      } catch (error) {
        if (isNoAnswer(error)) return undefined;
        throw error;
      }
    },
    flush: () => nc.flush(),
    isConnected: () => isConnected,
    async close() {
      // Draining while the bus is away would wait for it.
      if (isConnected) await nc.drain();
      else await nc.close();
    },
  };
};
