import { parseMachineRef } from "../proto/subjects.js";
import { createCaller } from "./caller.js";
import { type Clock, SYSTEM_CLOCK } from "./clock.js";
import type { Credentials } from "./credentials.js";
import { createMachine, type Machine } from "./machine.js";
import type { ControlRpc } from "./rpc.js";

/** A client of one bus. */
export interface Farhand extends AsyncDisposable {
  /** `machine` or `workspace/machine`; does no I/O. */
  machine(name: string): Machine;
  close(): Promise<void>;
}

export interface FarhandOptions {
  readonly rpc: ControlRpc & { close?(): Promise<void> };
  readonly workspace: string;
  /** Proves us to machines, and machines to us. */
  readonly credentials?: Credentials | undefined;
  readonly clock?: Clock;
}

/** Puts the client together over any transport. */
export const createFarhand = ({
  rpc,
  workspace,
  credentials,
  clock = SYSTEM_CLOCK,
}: FarhandOptions): Farhand => {
  const caller = createCaller({ rpc, clock, credentials });
  const close = async (): Promise<void> => rpc.close?.();
  return {
    machine: (name) => createMachine(caller, parseMachineRef(name, workspace)),
    close,
    [Symbol.asyncDispose]: close,
  };
};
