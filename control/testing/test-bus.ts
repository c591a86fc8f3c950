import { SeenQuery, SeenReply } from "../../proto/gen/machine.js";
import { parseSubject, subjects } from "../../proto/subjects.js";
import type { Clock } from "../clock.js";
import type { ControlRpc, Exchange, Outcome } from "../rpc.js";
import { aborted } from "./aborted.js";
import type { Station } from "./test-machine.js";

export interface TestBus extends ControlRpc {
  setLink(state: "up" | "down"): void;
  close(): Promise<void>;
}

export interface TestBusOptions {
  readonly clock: Clock;
  readonly maxPayload: number;
  /** By the subject that each listens on. */
  readonly stations: ReadonlyMap<string, Station>;
}

const NEVER_SEEN: SeenReply = { ageMs: undefined, goodbye: false };

/** Carries requests to machines in memory, with the outcomes that a real bus has. */
export const createTestBus = ({ clock, maxPayload, stations }: TestBusOptions): TestBus => {
  /** Aborted when the link that is up now goes down; undefined while it is down. */
  let link: AbortController | undefined = new AbortController();
  let isClosed = false;

  const route = async (subject: string, payload: Uint8Array): Promise<Outcome> => {
    const workspace = parseSubject(subject)?.workspace;
    if (workspace !== undefined && subject === subjects.seen(workspace)) {
      const { machine } = SeenQuery.decode(payload);
      const seen = stations.get(subjects.rpc({ workspace, machine }))?.seen() ?? NEVER_SEEN;
      return { kind: "reply", payload: SeenReply.encode(seen).finish() };
    }
    return stations.get(subject)?.deliver(payload) ?? { kind: "no_responders" };
  };

  const carry = async (
    { subject, payload, timeoutMs, signal }: Exchange,
    linkEnds: AbortSignal,
  ): Promise<Outcome> => {
    const done = new AbortController();
    const ways: Promise<Outcome>[] = [
      route(subject, payload),
      clock.sleep(timeoutMs, done.signal).then(() => ({ kind: "timeout", linkIsUp: true })),
      aborted(linkEnds, done.signal).then(() => ({ kind: "link_lost" })),
    ];
    if (signal !== undefined) {
      const given = aborted(signal, done.signal).then((): Outcome => {
        throw signal.reason;
      });
      ways.push(given);
    }
    try {
      return await Promise.race(ways);
    } finally {
      done.abort();
    }
  };

  return {
    async exchange(exchange) {
      exchange.signal?.throwIfAborted();
      if (isClosed) return { kind: "unavailable", because: "this client was closed" };
      if (link === undefined) return { kind: "unavailable", because: "the test has taken the link down" };
      if (exchange.payload.length > maxPayload) return { kind: "too_large", limit: maxPayload };
      return carry(exchange, link.signal);
    },
    setLink(state) {
      if (state === "up") link ??= new AbortController();
      else {
        link?.abort();
        link = undefined;
      }
    },
    async close() {
      isClosed = true;
      link?.abort();
    },
  };
};
