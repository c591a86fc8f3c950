import { SeenQuery, SeenReply } from "../proto/gen/machine.js";
import { formatMachineRef, type MachineRef, subjects } from "../proto/subjects.js";
import type { Clock } from "./clock.js";
import type { ControlRpc } from "./rpc.js";

/** What this client knows of each machine from the answers it got. */
export interface Sightings {
  note(machine: string, agentTimeMs: number): void;
  /** The machine's clock minus ours, as far as it is known. */
  skewMs(machine: string): number;
  /** Since the machine was last heard of, by us or by the control plane; undefined for never. */
  seenAgoMs(ref: MachineRef): Promise<number | undefined>;
}

const ASK_MS = 500;
/** A difference of clocks smaller than this is left to the network. */
const SKEW_FLOOR_MS = 500;

export const createSightings = (rpc: ControlRpc, clock: Clock): Sightings => {
  const skews = new Map<string, number>();
  const heardAt = new Map<string, number>();

  const askPlane = async (ref: MachineRef): Promise<SeenReply | undefined> => {
    const payload = SeenQuery.encode({ machine: ref.machine }).finish();
    const outcome = await rpc.exchange({
      subject: subjects.seen(ref.workspace),
      payload,
      timeoutMs: ASK_MS,
    });
    return outcome.kind === "reply" ? SeenReply.decode(outcome.payload) : undefined;
  };

  return {
    note(machine, agentTimeMs) {
      const skew = agentTimeMs - clock.now();
      skews.set(machine, Math.abs(skew) < SKEW_FLOOR_MS ? 0 : skew);
      heardAt.set(machine, clock.monotonic());
    },
    skewMs: (machine) => skews.get(machine) ?? 0,
    async seenAgoMs(ref) {
      const at = heardAt.get(formatMachineRef(ref));
      const own = at === undefined ? undefined : clock.monotonic() - at;
      // Without a control plane we only know what we have seen ourselves.
      const told = await askPlane(ref);
      if (told?.goodbye === true) return undefined;
      return told?.ageMs === undefined ? own : Math.min(own ?? Infinity, Number(told.ageMs));
    },
  };
};
