import * as z from "zod";
import { idProblem, parseMachineRef, subjects } from "../../proto/subjects.js";
import { type Clock, SYSTEM_CLOCK } from "../clock.js";
import { createFarhand, type Farhand } from "../farhand.js";
import { readOptions } from "../options.js";
import { createTestBus } from "./test-bus.js";
import { createStation, type Station, type TestMachine } from "./test-machine.js";

export interface TestFarhandOptions {
  /** The workspace of names that carry none. */
  readonly workspace?: string | undefined;
  /** Where relative paths and commands start on the machines. */
  readonly root?: string | undefined;
  /** What one message may measure. */
  readonly maxPayloadBytes?: number | undefined;
  /** The time of client and machines, for tests that would not wait. */
  readonly clock?: Clock | undefined;
}

/** A client and its machines, all in this process. */
export interface TestFarhand {
  /** What the code under test gets: the client that `connect` returns, over memory. */
  readonly farhand: Farhand;
  /** The machine of that name, added by the first call. One that was never added is offline. */
  machine(name: string): TestMachine;
  /** Whether the client itself can reach the bus. */
  setLink(state: "up" | "down"): void;
}

const MIB = 1024 * 1024;
const MIN_PAYLOAD_BYTES = 4096;

const schema = z.strictObject({
  workspace: z
    .string()
    .refine((id) => idProblem(id) === undefined, { error: ({ input }) => idProblem(String(input)) ?? "" })
    .default("default"),
  root: z.string().startsWith("/", "is not an absolute path").default("/home/test"),
  maxPayloadBytes: z.int().min(MIN_PAYLOAD_BYTES, `is less than ${MIN_PAYLOAD_BYTES}`).default(MIB),
  clock: z
    .custom<Clock>(
      (given) =>
        typeof given === "object" &&
        given !== null &&
        ["now", "monotonic", "sleep"].every((name) => name in given),
      "has not now, monotonic and sleep",
    )
    .default(SYSTEM_CLOCK),
});

const linkSchema = z.enum(["up", "down"], "the link is neither up nor down");

/** Lets code that uses farhand run in tests without a bus and without machines. */
export const createTestFarhand = (options: TestFarhandOptions = {}): TestFarhand => {
  const { workspace, root, maxPayloadBytes: maxPayload, clock } = readOptions(schema, options);
  const stations = new Map<string, Station>();
  const bus = createTestBus({ clock, maxPayload, stations });
  return {
    farhand: createFarhand({ rpc: bus, workspace, clock }),
    machine(name) {
      const ref = parseMachineRef(name, workspace);
      const subject = subjects.rpc(ref);
      const station = stations.get(subject) ?? createStation({ ref, root, clock, maxPayload });
      stations.set(subject, station);
      return station.machine;
    },
    setLink: (state) => bus.setLink(readOptions(linkSchema, state)),
  };
};
