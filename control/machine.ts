import type { DescribeResult } from "../proto/gen/machine.js";
import type { MachineRef } from "../proto/subjects.js";
import type { Caller, CallOptions } from "./caller.js";
import { type Commands, createCommands } from "./commands.js";
import { type Fence, NO_FENCE, type OpName, type OpRequest, type ResultOf } from "./envelope.js";
import { createFiles, type Files } from "./files.js";

/** Sends one op to one machine. */
export type MachineCall = <K extends OpName>(op: OpRequest<K>, options: CallOptions) => Promise<ResultOf<K>>;

export interface MachineDescription {
  readonly workspace: string;
  readonly machine: string;
  readonly hostname: string;
  readonly os: string;
  readonly osVersion: string;
  readonly arch: string;
  readonly user: string;
  /** Where relative paths and commands start. */
  readonly root: string;
  readonly started: Date;
  readonly ops: readonly string[];
  /** Every capability, with the reason where it is not available. */
  readonly capabilities: Readonly<Record<string, { available: boolean; reason: string | null }>>;
  readonly limits: Readonly<Record<string, number>>;
  readonly treeMethod: string;
}

/** A machine by name. Making one does no I/O, and nothing here ever creates a machine. */
export interface Machine {
  readonly workspace: string;
  readonly name: string;
  readonly commands: Commands;
  readonly files: Files;
  /** Milliseconds there and back. */
  ping(options?: CallOptions): Promise<number>;
  describe(options?: CallOptions): Promise<MachineDescription>;
  /** The same machine, with every request made under a lease. */
  under(fence: Fence): Machine;
}

const toDescription = ({
  _unknownFields,
  startedMs,
  capabilities,
  limits,
  ...facts
}: DescribeResult): MachineDescription => ({
  ...facts,
  started: new Date(Number(startedMs)),
  capabilities: Object.fromEntries(
    capabilities.map(({ name, available, reason }) => [
      name,
      { available, reason: reason === "" ? null : reason },
    ]),
  ),
  limits: Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, Number(value)])),
});

export const createMachine = (caller: Caller, ref: MachineRef, fence: Fence = NO_FENCE): Machine => {
  const call: MachineCall = (op, options) => caller.call(ref, op, { ...options, fence });
  return {
    workspace: ref.workspace,
    name: ref.machine,
    commands: createCommands(call),
    files: createFiles(call),
    async ping(options = {}) {
      const sentAt = performance.now();
      await call({ $case: "ping", value: {} }, options);
      return performance.now() - sentAt;
    },
    describe: async (options = {}) => toDescription(await call({ $case: "describe", value: {} }, options)),
    under: (held) => createMachine(caller, ref, held),
  };
};
