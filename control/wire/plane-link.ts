import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Bucket, type BucketOptions, openBucket } from "./bucket.js";
import { type BusPlace, type BusUser, busOptions } from "./bus-user.js";

export interface ServiceRequest {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Where the caller wants the answer: not checked by the server, so the service must. */
  readonly reply: string;
}

/** The control plane's own connection: it hears events, answers services and keeps records. */
export interface PlaneLink {
  /** Calls back with the subject's parts and the bytes. */
  hear(subject: string, onMessage: (subject: string, data: Uint8Array) => void): void;
  /**
   * Answers requests; several planes share the work in a queue group. A service that gives nothing
   * does not answer.
   */
  answer(
    subject: string,
    respond: (request: ServiceRequest) => Uint8Array | undefined | Promise<Uint8Array | undefined>,
  ): void;
  publish(subject: string, data: Uint8Array): void;
  /** Resolves when the server has everything that was published before. */
  flush(): Promise<void>;
  bucket(name: string, options: BucketOptions): Promise<Bucket>;
  close(): Promise<void>;
}

export interface PlaneLinkOptions extends BusPlace {
  /** Absent on a bus without credentials. */
  readonly user?: BusUser | undefined;
  /** Told of every message that could not be handled. */
  readonly onProblem: (error: unknown) => void;
}

const QUEUE = "control";

export const openPlaneLink = async (options: PlaneLinkOptions): Promise<PlaneLink> => {
  const { onProblem } = options;
  const nc: NatsConnection = await connect({
    ...busOptions(options, options.user),
    name: "farhand-control",
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    ignoreAuthErrorAbort: true,
    pingInterval: 10_000,
    maxPingOut: 2,
  });
  return {
    hear(subject, onMessage) {
      nc.subscribe(subject, {
        callback: (error, message) => {
          try {
            if (error !== null) throw error;
            onMessage(message.subject, message.data);
          } catch (thrown) {
            onProblem(thrown);
          }
        },
      });
    },
    answer(subject, respond) {
      nc.subscribe(subject, {
        queue: QUEUE,
        callback: (error, message) => {
          if (error !== null) return onProblem(error);
          Promise.resolve({ subject: message.subject, data: message.data, reply: message.reply ?? "" })
            .then(respond)
            .then((answer) => void (answer !== undefined && message.respond(answer)))
            .catch(onProblem);
        },
      });
    },
    publish: (subject, data) => nc.publish(subject, data),
    flush: () => nc.flush(),
    bucket: (name, options) => openBucket(nc, name, options),
    async close() {
      await nc.drain().catch(() => nc.close());
    },
  };
};
