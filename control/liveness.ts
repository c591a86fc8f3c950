import { PRESENCE } from "../proto/limits.js";

export type Liveness = "online" | "agent_reconnecting" | "agent_offline";

export interface LivenessFacts {
  readonly enrolled: boolean;
  readonly probe: "answered" | "missed";
  /** Since the machine was last heard of; undefined for never, or since it said goodbye. */
  readonly seenAgoMs: number | undefined;
}

/** A machine is never "not found": it is online, reconnecting or offline. */
export const liveness = ({ enrolled, probe, seenAgoMs }: LivenessFacts): Liveness => {
  if (!enrolled) return "agent_offline";
  if (probe === "answered") return "online";
  return seenAgoMs !== undefined && seenAgoMs <= PRESENCE.seenMs ? "agent_reconnecting" : "agent_offline";
};

/**
 * Does this error mean that the machine is gone, so that another should be made in its place?
 * Never: a person's machine cannot be recreated, and one that does not answer may come back.
 */
export const isMachineGone = (_error: unknown): false => false;
