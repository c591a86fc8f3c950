import { connect, type NatsConnection } from "@nats-io/transport-node";

/** The control plane's own connection: it hears events and answers services. */
export interface PlaneLink {
  /** Calls back with the subject's parts and the bytes. */
  hear(subject: string, onMessage: (subject: string, data: Uint8Array) => void): void;
  /** Answers requests; several planes share the work in a queue group. */
  answer(
    subject: string,
    respond: (subject: string, data: Uint8Array) => Uint8Array | Promise<Uint8Array>,
  ): void;
  close(): Promise<void>;
}

export interface PlaneLinkOptions {
  readonly servers: readonly string[];
  /** Told of every message that could not be handled. */
  readonly onProblem: (error: unknown) => void;
}

const QUEUE = "control";

export const openPlaneLink = async ({ servers, onProblem }: PlaneLinkOptions): Promise<PlaneLink> => {
  const nc: NatsConnection = await connect({
    servers: [...servers],
    name: "farhand-control",
    noAsyncTraces: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
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
          Promise.resolve()
            .then(() => respond(message.subject, message.data))
            .then((reply) => message.respond(reply))
            .catch(onProblem);
        },
      });
    },
    async close() {
      await nc.drain().catch(() => nc.close());
    },
  };
};
