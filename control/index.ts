export { connect, type ConnectOptions } from "./connect.js";
export type { Farhand } from "./farhand.js";
export type { Machine, MachineDescription } from "./machine.js";
export type { CallOptions } from "./caller.js";
export type { Fence } from "./envelope.js";
export {
  CommandExitError,
  type Commands,
  type EndReason,
  type RunOptions,
  type RunResult,
} from "./commands.js";
export type { FileInfo, FileKindName, Files, Page, ReadOptions, WriteOptions, Written } from "./files.js";
export { isMachineGone } from "./liveness.js";
export { FarhandError } from "../proto/farhand-error.js";
export { FAULTS, type FaultCode, type Ran, type Retry } from "../proto/faults.js";
export { VERSION } from "../proto/version.js";
