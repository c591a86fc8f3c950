import type { ControlRequest, ControlResponse } from "../proto/gen/envelope.js";

export type RequestOp = NonNullable<ControlRequest["op"]>;
export type ResponseResult = NonNullable<ControlResponse["result"]>;

/** An op's one name, as it stands in the proto. */
export type OpName = RequestOp["$case"];
export type ArgsOf<K extends OpName> = Extract<RequestOp, { $case: K }>["value"];
export type ResultOf<K extends OpName> = Extract<ResponseResult, { $case: K }>["value"];

export type Role = "operator" | "reader";

/** Who asks, as it was verified. */
export interface Caller {
  readonly name: string;
  readonly role: Role;
  /** Tells two callers of one name apart; empty where the bus is trusted. */
  readonly publicKey: string;
}

/** One request on its way through the steps. */
export interface Call {
  readonly requestId: string;
  readonly scope: string;
  readonly epoch: bigint;
  readonly deadlineMs: number;
  readonly issuedMs: number;
  readonly op: RequestOp;
  /** Whether the op can change anything. */
  readonly mutates: boolean;
  readonly caller: Caller;
  /** Aborted when the caller cancels, or when the agent ends what still runs. */
  readonly signal: AbortSignal;
  /** What an op's result may take in one reply. */
  readonly maxReplyBytes: number;
}

export type Next = (call: Call) => Promise<ResponseResult>;

/** A rule that every request passes. */
export type Step = (next: Next) => Next;
