import { connect } from "@nats-io/transport-node";
import { FarhandError } from "../../proto/farhand-error.js";
import { type BusPlace, type BusUser, busOptions } from "./bus-user.js";

const UPDATE = "$SYS.REQ.CLAIMS.UPDATE";
const ANSWER_MS = 5_000;

/** Tells every server of the bus the account's new claims; resolves when one has taken them. */
export const pushClaims = async (place: BusPlace, user: BusUser, accountJwt: string): Promise<void> => {
  const nc = await connect({ ...busOptions(place, user), name: "farhand-claims" });
  try {
    const reply = await nc.request(UPDATE, accountJwt, { timeout: ANSWER_MS });
    const answer: { error?: { description?: string } } = reply.json();
    if (answer.error !== undefined) {
      throw new FarhandError(
        "control_unavailable",
        `the bus did not take the account's claims: ${answer.error.description ?? "it gave no reason"}`,
      );
    }
  } finally {
    await nc.close();
  }
};
