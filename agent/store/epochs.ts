import type { Database, RootDatabase } from "lmdb";
import { FarhandError } from "../../proto/farhand-error.js";

export interface Epochs {
  /** Advances the fence of a scope, or throws `fenced`. */
  admit(claim: FenceClaim): void;
  /** The scopes that were ever fenced, with their highest epoch. */
  list(): { scope: string; epoch: bigint }[];
}

export interface FenceClaim {
  readonly scope: string;
  /** 0 for no fence. */
  readonly epoch: bigint;
  readonly mutates: boolean;
}

/** What a fence that stands at `held` makes of a request: throws, or says whether it moves on. */
export const fenceDecision = (
  held: bigint | undefined,
  { scope, epoch, mutates }: FenceClaim,
): "stay" | "advance" => {
  const place = scope === "" ? "this machine" : `scope ${JSON.stringify(scope)}`;
  if (epoch === 0n) {
    if (held === undefined || !mutates) return "stay";
    throw new FarhandError(
      "fenced",
      `${place} is held under a lease (epoch ${held}), and the request carries none`,
      {
        detail: { scope, held: String(held), epoch: "0" },
      },
    );
  }
  if (held !== undefined && epoch < held) {
    throw new FarhandError("fenced", `the lease on ${place} has moved on: epoch ${epoch} is behind ${held}`, {
      detail: { scope, held: String(held), epoch: String(epoch) },
    });
  }
  return held === epoch ? "stay" : "advance";
};

/** The highest epoch seen per scope, on disk before a request that raised it goes on. */
export const openEpochs = (root: RootDatabase): Epochs => {
  const db: Database<string, string> = root.openDB({ name: "epochs" });
  const held = new Map<string, bigint>();
  for (const { key, value } of db.getRange()) held.set(key.slice(1), BigInt(value));
  return {
    admit(claim) {
      if (fenceDecision(held.get(claim.scope), claim) === "stay") return;
      // The prefix keeps the empty scope a legal key.
      db.putSync(`:${claim.scope}`, String(claim.epoch));
      held.set(claim.scope, claim.epoch);
    },
    list: () => [...held].map(([scope, epoch]) => ({ scope, epoch })),
  };
};
