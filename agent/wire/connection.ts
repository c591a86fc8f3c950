import { headers, type Msg, type NatsConnection, type Subscription } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { encodeAuthHeader, proofIn } from "../../proto/authentic.js";
import { LIMITS } from "../../proto/limits.js";
import { isRefusal } from "./dial.js";

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

/** What is to be heard, over whichever connection. */
export interface Topic {
  readonly subject: string;
  readonly queue?: string | undefined;
  readonly onMessage: (message: WireMessage) => void | Promise<void>;
}

/** One connection to the bus, which counts what is not yet answered over it. */
export interface Connection {
  readonly nc: NatsConnection;
  hear(topic: Topic): () => void;
  /** Keeps the connection open until this has ended. */
  during<T>(work: Promise<T>): Promise<T>;
  /** Hears nothing more, and closes when all that was heard has been answered. */
  retire(): Promise<void>;
  close(): Promise<void>;
}

export interface ConnectionEvents {
  onDisconnect(): void;
  onReconnect(): void;
  /** The bus no longer takes the credential. */
  onRefused(): void;
}

/** Beyond the longest command, nobody waits for an answer. */
const RETIRED_MS = LIMITS.runTimeoutMs.max + LIMITS.graceMs.max;
const CLOSE_MS = 2_000;

const toWireMessage = (nc: NatsConnection, message: Msg): WireMessage => ({
  data: message.data,
  subject: message.subject,
  reply: message.reply ?? "",
  proof: proofIn(message),
  respond(data, proof) {
    if (message.reply === undefined || nc.isClosed()) return;
    if (proof === undefined || proof === "") return nc.publish(message.reply, data);
    const header = Object.assign(headers(), { encode: () => encodeAuthHeader(proof) });
    nc.publish(message.reply, data, { headers: header });
  },
});

const within = async (ms: number, work: Promise<unknown>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([work, late]);
  clearTimeout(timer);
};

export const createConnection = (options: {
  nc: NatsConnection;
  events: ConnectionEvents;
  log: Logger;
}): Connection => {
  const { nc, events, log } = options;
  const heard = new Set<Subscription>();
  let underWay = 0;
  let isUp = true;
  let isRetired = false;
  let onIdle: (() => void) | undefined;

  const during = async <T>(work: Promise<T>): Promise<T> => {
    underWay++;
    try {
      return await work;
    } finally {
      if (--underWay === 0) onIdle?.();
    }
  };

  const close = async (): Promise<void> => {
    // Draining while the bus is away would wait for it.
    if (isUp && !nc.isClosed())
      await within(
        CLOSE_MS,
        nc.drain().catch(() => undefined),
      );
    if (!nc.isClosed()) await nc.close();
  };

  const watch = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect") {
        if (isUp) events.onDisconnect();
        isUp = false;
        // Nothing that came by it can be answered any more.
        if (isRetired) await nc.close();
      } else if (status.type === "reconnect") {
        isUp = true;
        events.onReconnect();
      } else if (status.type === "error") {
        if (isRefusal(status.error)) events.onRefused();
        else log.error({ err: status.error }, "the bus reported an error");
      }
    }
  };
  void watch().catch((error: unknown) => log.error({ err: error }, "the connection could not be watched"));

  return {
    nc,
    during,
    close,
    hear({ subject, queue, onMessage }) {
      const callback = (error: Error | null, message: Msg): void => {
        if (error !== null) return log.error({ err: error, subject }, "a subscription was refused");
        // A callback that throws would leave the connection deaf.
        void during(Promise.resolve(toWireMessage(nc, message)).then(onMessage)).catch((thrown: unknown) =>
          log.error({ err: thrown }, "a message could not be handled"),
        );
      };
      const subscription = nc.subscribe(subject, { ...(queue === undefined ? {} : { queue }), callback });
      heard.add(subscription);
      return () => {
        heard.delete(subscription);
        subscription.unsubscribe();
      };
    },
    async retire() {
      isRetired = true;
      // What the server sent before it knew is still handled.
      await Promise.allSettled([...heard].map((subscription) => subscription.drain()));
      if (underWay > 0) await within(RETIRED_MS, new Promise<void>((resolve) => (onIdle = resolve)));
      await close();
    },
  };
};
