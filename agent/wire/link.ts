import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { FarhandError } from "../../proto/farhand-error.js";
import { createBackoff, refusedDelayMs } from "./backoff.js";
import { type Connection, createConnection, type Topic, type WireMessage } from "./connection.js";
import { type BusAccess, dial, isNoAnswer, isRefusal } from "./dial.js";

export type { WireMessage } from "./connection.js";

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
  /** What a bucket on the bus holds under a key, or undefined for nothing; throws when it did not say. */
  lookUp(bucket: string, key: string, timeoutMs: number): Promise<Uint8Array | undefined>;
  /** Resolves when the server has everything that was published before. */
  flush(): Promise<void>;
  isConnected(): boolean;
  /** Moves to a new connection, opened with the credential as it stands now; what runs is answered over the old one. */
  renew(): Promise<void>;
  close(): Promise<void>;
}

export interface LinkOptions extends BusAccess {
  readonly log: Logger;
  /** Called before a connection is opened, so that the credential is good by then; never throws. */
  readonly prepare?: (state: { wasRefused: boolean }) => Promise<void>;
  onDisconnect(): void;
  onReconnect(): void;
}

const MIN_DELAY_MS = 250;
const MAX_DELAY_MS = 30_000;
const DEFAULT_MAX_PAYLOAD = 1024 * 1024;
const NOT_FOUND = 404;

/** A topic with the means to end it on the connection in use. */
interface Heard extends Topic {
  end: () => void;
}

export const openLink = async (options: LinkOptions): Promise<Link> => {
  const { log } = options;
  const backoff = createBackoff({ minMs: MIN_DELAY_MS, maxMs: MAX_DELAY_MS });
  const topics = new Set<Heard>();
  const open = new Set<Connection>();
  const closing = new AbortController();
  let isConnected = false;

  const connectOnce = async (): Promise<Connection> => {
    const nc = await dial(options, {
      maxReconnectAttempts: -1,
      reconnectDelayHandler: () => backoff.next(),
      pingInterval: 10_000,
      maxPingOut: 2,
    });
    const connection: Connection = createConnection({
      nc,
      log,
      events: {
        onDisconnect: () => connection === current && lost(),
        onReconnect: () => connection === current && back(),
        onRefused: () => void replaceRefused(connection),
      },
    });
    open.add(connection);
    void nc.closed().then(() => open.delete(connection));
    return connection;
  };

  const connectUntil = async (wasRefused: boolean): Promise<Connection> => {
    let refusals = 0;
    let hasFailed = false;
    for (;;) {
      try {
        await options.prepare?.({ wasRefused });
        return await connectOnce();
      } catch (error) {
        wasRefused = isRefusal(error);
        if (wasRefused && refusals++ === 0) {
          log.error(
            "the bus refuses this machine's credentials: they were revoked or have expired, or the clocks differ " +
              `(it is ${new Date().toISOString()} here); trying again from time to time`,
          );
        } else if (!wasRefused && !hasFailed) {
          hasFailed = true;
          log.warn({ err: error }, "cannot reach the bus; trying again until it is there");
        }
        const delayMs = wasRefused ? refusedDelayMs(refusals, Math.random()) : backoff.next();
        await sleep(delayMs, undefined, { signal: closing.signal });
      }
    }
  };

  const lost = (): void => {
    if (!isConnected) return;
    isConnected = false;
    log.warn({ server: current.nc.getServer() }, "lost the bus; trying again until it is back");
    options.onDisconnect();
  };

  const back = (): void => {
    isConnected = true;
    backoff.reset();
    log.info({ server: current.nc.getServer() }, "back on the bus");
    options.onReconnect();
  };

  /** The client library would go on trying with what was refused, and too often. */
  const replaceRefused = async (refused: Connection): Promise<void> => {
    const isFirstWord = open.delete(refused);
    await refused.nc.close();
    if (!isFirstWord || refused !== current || closing.signal.aborted) return;
    lost();
    const next = await connectUntil(true).catch(() => undefined);
    if (next === undefined || closing.signal.aborted) return next?.close();
    current = next;
    for (const topic of topics) topic.end = current.hear(topic);
    back();
  };

  let current: Connection = await connectUntil(false);
  isConnected = true;
  backoff.reset();

  const renew = async (): Promise<void> => {
    if (!isConnected) return;
    const old = current;
    const next = await connectOnce();
    const ends = new Map([...topics].map((topic) => [topic, next.hear(topic)]));
    try {
      await next.nc.flush();
    } catch (error) {
      await next.close();
      throw error;
    }
    if (current !== old || closing.signal.aborted) return next.close();
    current = next;
    for (const topic of topics) topic.end = ends.get(topic) ?? next.hear(topic);
    for (const [topic, end] of ends) if (!topics.has(topic)) end();
    if (!isConnected) back();
    void old.retire();
  };

  return {
    get server() {
      return current.nc.getServer();
    },
    get maxPayload() {
      return current.nc.info?.max_payload ?? DEFAULT_MAX_PAYLOAD;
    },
    subscribe(subject, { queue }, onMessage) {
      const topic: Topic = { subject, queue, onMessage };
      const heard: Heard = { ...topic, end: current.hear(topic) };
      topics.add(heard);
      return () => {
        topics.delete(heard);
        heard.end();
      };
    },
    publish(subject, data) {
      if (!current.nc.isClosed()) current.nc.publish(subject, data);
    },
    async ask(subject, data, timeoutMs) {
      try {
        return (await current.during(current.nc.request(subject, data, { timeout: timeoutMs }))).data;
      } catch (error) {
        if (isNoAnswer(error)) return undefined;
        throw error;
      }
    },
    async lookUp(bucket, key, timeoutMs) {
      const subject = `$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.${key}`;
      const answer = await current.during(current.nc.request(subject, "", { timeout: timeoutMs }));
      const status = answer.headers?.code ?? 0;
      // A key that was deleted has a message that says so, without a value.
      if (status === NOT_FOUND || answer.headers?.has("KV-Operation") === true) return undefined;
      if (status !== 0) {
        const said = answer.headers?.description ?? "";
        throw new FarhandError("control_unavailable", `the bus answered ${status} ${said}`.trim());
      }
      return answer.data;
    },
    flush: () => current.nc.flush(),
    isConnected: () => isConnected,
    renew,
    async close() {
      closing.abort();
      await Promise.all([...open].map((connection) => connection.close()));
    },
  };
};
