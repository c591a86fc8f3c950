import * as z from "zod";
import { readOptions } from "../options.js";
import { FAMILIES, type Family } from "./op-rows.js";

/** A machine that is reconnecting does not answer, but was heard of when it was switched. */
export type Presence = "online" | "offline" | "reconnecting";

export interface Switches {
  readonly presence: Presence;
  /** Refuses whatever changes something, as an agent that shuts down does. */
  readonly draining: boolean;
  /** What the owner has not consented to. */
  readonly consentRequired: readonly Family[];
  /** The way to the machine and back. */
  readonly latencyMs: number;
}

export const INITIAL_SWITCHES: Switches = {
  presence: "online",
  draining: false,
  consentRequired: [],
  latencyMs: 0,
};

const schema = z.strictObject({
  presence: z.enum(["online", "offline", "reconnecting"]).optional(),
  draining: z.boolean("is neither true nor false").optional(),
  consentRequired: z.array(z.enum(FAMILIES)).optional(),
  latencyMs: z.number("is not a number").nonnegative("is negative").optional(),
});

/** The switches as they are after a change; what it does not name stays. */
export const changeSwitches = (before: Switches, change: Partial<Switches>): Switches => {
  const read = readOptions(schema, change);
  return {
    presence: read.presence ?? before.presence,
    draining: read.draining ?? before.draining,
    consentRequired: read.consentRequired ?? before.consentRequired,
    latencyMs: read.latencyMs ?? before.latencyMs,
  };
};
