import { type Presence, Presence_Kind } from "../../proto/gen/machine.js";

export interface Seen {
  readonly ageMs: number | undefined;
  readonly goodbye: boolean;
}

/** When each machine was last heard of, kept in memory from what they announce. */
export interface Directory {
  hear(machine: string, presence: Pick<Presence, "kind">): void;
  seen(machine: string): Seen;
  size(): number;
}

export const createDirectory = (monotonic: () => number): Directory => {
  const machines = new Map<string, { at: number; goodbye: boolean }>();
  return {
    hear: (machine, { kind }) =>
      void machines.set(machine, { at: monotonic(), goodbye: kind === Presence_Kind.GOODBYE }),
    seen(machine) {
      const entry = machines.get(machine);
      return {
        ageMs: entry === undefined ? undefined : monotonic() - entry.at,
        goodbye: entry?.goodbye ?? false,
      };
    },
    size: () => machines.size,
  };
};
