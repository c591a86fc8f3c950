import { Presence, Presence_Kind } from "../../proto/gen/machine.js";
import { PRESENCE } from "../../proto/limits.js";
import { VERSION } from "../../proto/version.js";
import type { Link } from "./link.js";

export interface PresenceSender {
  hello(): void;
  goodbye(): void;
}

const JITTER = 0.2;

/** Tells the workspace that this machine is there, now and every few seconds. */
export const announce = (options: {
  link: Link;
  subject: string;
  instanceId: string;
  now: () => number;
}): PresenceSender => {
  const { link, subject, instanceId, now } = options;
  const send = (kind: Presence_Kind): void =>
    link.publish(
      subject,
      Presence.encode({ kind, instanceId, version: VERSION, timeMs: BigInt(Math.round(now())) }).finish(),
    );
  let timer: NodeJS.Timeout | undefined;
  const schedule = (): void => {
    timer = setTimeout(
      () => {
        // While the bus is away heartbeats would pile up in the send buffer.
        if (link.isConnected()) send(Presence_Kind.HEARTBEAT);
        schedule();
      },
      PRESENCE.heartbeatMs * (1 + JITTER * (Math.random() - 0.5)),
    );
  };
  schedule();
  return {
    hello: () => send(Presence_Kind.HELLO),
    goodbye() {
      clearTimeout(timer);
      send(Presence_Kind.GOODBYE);
    },
  };
};
