import { setTimeout as sleep } from "node:timers/promises";
import { Claim } from "../../proto/gen/machine.js";
import type { Link } from "./link.js";

/** Of two instances with one identity, the one with the higher generation serves; the id breaks a tie. */
export const outranks = (
  a: Pick<Claim, "generation" | "instanceId">,
  b: Pick<Claim, "generation" | "instanceId">,
): boolean => (a.generation === b.generation ? a.instanceId > b.instanceId : a.generation > b.generation);

export interface ClaimOptions {
  readonly link: Link;
  readonly subject: string;
  readonly instanceId: string;
  readonly hostname: string;
  readonly generation: () => number;
  /** Takes a generation above the one given. */
  readonly outbid: (generation: number) => number;
  /** Called once, when another instance has taken the identity over; this one must stop serving before it returns. */
  readonly onSuperseded: (by: Claim) => void;
}

export interface ClaimHold {
  /** Announces this instance again after the link was away, and waits until a better claim would have been heard. */
  renew(): Promise<void>;
  release(): void;
}

const ASK_MS = 1_000;
const HEAR_MS = 150;
const ROUNDS = 5;

/**
 * Takes the identity on the bus: whoever held it before has stopped serving when this resolves.
 * Nobody listening is known at once, since the bus answers "no responders".
 */
export const takeIdentity = async (options: ClaimOptions): Promise<ClaimHold> => {
  const { link, subject, instanceId, hostname } = options;
  let isLost = false;
  const mine = (): Claim => ({ instanceId, generation: BigInt(options.generation()), hostname });
  const encoded = (): Uint8Array => Claim.encode(mine()).finish();

  for (let round = 0; round < ROUNDS; round++) {
    const answer = await link.ask(subject, encoded(), ASK_MS);
    if (answer === undefined) break;
    const other = Claim.decode(answer);
    if (outranks(mine(), other)) break;
    options.outbid(Number(other.generation));
  }

  const hear = (claim: Claim, reply: string): void => {
    if (claim.instanceId === instanceId || isLost) return;
    if (outranks(claim, mine())) {
      isLost = true;
      options.onSuperseded(claim);
      if (reply !== "") link.publish(reply, encoded());
      return;
    }
    link.publish(reply === "" ? subject : reply, encoded());
  };
  const unsubscribe = link.subscribe(subject, {}, ({ data, reply }) => hear(Claim.decode(data), reply));
  link.publish(subject, encoded());
  await link.flush();

  return {
    async renew() {
      link.publish(subject, encoded());
      await link.flush();
      await sleep(HEAR_MS);
    },
    release: unsubscribe,
  };
};
