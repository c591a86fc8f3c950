import { FarhandError } from "../../proto/farhand-error.js";
import type { Fence } from "../envelope.js";

/** What a fence that stands at `held` makes of a request: throws, or says where it stands now. */
export const fenceDecision = (
  held: bigint | undefined,
  { scope, epoch, mutates }: Fence & { readonly mutates: boolean },
): bigint | undefined => {
  const place = scope === "" ? "this machine" : `scope ${JSON.stringify(scope)}`;
  const fenced = (says: string): FarhandError =>
    new FarhandError("fenced", says, { detail: { scope, held: String(held), epoch: String(epoch) } });
  if (epoch === 0n) {
    if (held === undefined || !mutates) return held;
    throw fenced(`${place} is held under a lease (epoch ${held}), and the request carries none`);
  }
  if (held !== undefined && epoch < held)
    throw fenced(`the lease on ${place} has moved on: epoch ${epoch} is behind ${held}`);
  return epoch;
};
