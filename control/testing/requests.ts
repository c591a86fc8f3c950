import type { FaultCode } from "../../proto/faults.js";
import { FarhandError } from "../../proto/farhand-error.js";
import type { ControlRequest } from "../../proto/gen/envelope.js";
import type { OpName, RequestOp } from "../envelope.js";

/** A request that reached the machine, whether or not its answer reached the caller. */
export interface RecordedRequest {
  readonly op: OpName;
  /** As on the wire: whole numbers of 64 bits are bigint. */
  readonly args: Readonly<Record<string, unknown>>;
  readonly requestId: string;
  readonly scope: string;
  readonly epoch: bigint;
  readonly outcome: "pending" | "ok" | FaultCode;
}

export interface Requests {
  readonly all: readonly RecordedRequest[];
  /** Keeps a request from its arrival on, and its outcome once there is one. */
  keep<T>(request: ControlRequest, op: RequestOp, handled: Promise<T>): Promise<T>;
}

export const createRequests = (): Requests => {
  const all: RecordedRequest[] = [];
  return {
    all,
    async keep({ requestId, scope, epoch }, op, handled) {
      const { _unknownFields, ...args } = op.value;
      const arrived: RecordedRequest = { op: op.$case, args, requestId, scope, epoch, outcome: "pending" };
      const at = all.push(arrived) - 1;
      try {
        const result = await handled;
        all[at] = { ...arrived, outcome: "ok" };
        return result;
      } catch (error) {
        all[at] = { ...arrived, outcome: FarhandError.from(error).code };
        throw error;
      }
    },
  };
};
