import { FarhandError } from "../proto/farhand-error.js";
import { type AgentInfo, ControlRequest, ControlResponse } from "../proto/gen/envelope.js";
import { LIMITS } from "../proto/limits.js";
import type { Call, Caller, Next, OpName, RequestOp, ResponseResult, Step } from "./call.js";

/** A request as it came in, whatever carried it. */
export interface Incoming {
  readonly data: Uint8Array;
  /** What the reply may measure. */
  readonly maxPayload: number;
  /** Whether it came on the workspace's scatter subject. */
  readonly scatter: boolean;
  /** Who was verified to have sent it, or why nobody was. */
  readonly caller: Caller | FarhandError;
}

export interface ServeOptions {
  readonly agent: AgentInfo;
  readonly steps: readonly Step[];
  readonly act: Next;
  readonly opRow: (name: OpName) => {
    readonly mutates: boolean;
    readonly scatter?: boolean;
    readonly anonymous?: boolean;
  };
  readonly now: () => number;
  /** Told of every failure that is a defect of ours. */
  readonly onDefect: (error: unknown, requestId: string) => void;
}

const decode = (data: Uint8Array): ControlRequest => {
  try {
    return ControlRequest.decode(data);
  } catch (error) {
    throw new FarhandError(
      "protocol",
      `the request is not a ControlRequest: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
};

const FIRST_OP_FIELD = 10;

/** The op, or an error that tells an op of a newer version from none at all. */
const opOf = ({ op, _unknownFields }: ControlRequest): RequestOp => {
  if (op !== undefined) return op;
  const fields = Object.keys(_unknownFields ?? {}).map((tag) => Number(tag) >>> 3);
  const field = fields.find((number) => number >= FIRST_OP_FIELD);
  if (field === undefined) throw new FarhandError("invalid", "the request names no op");
  throw new FarhandError("unsupported", `this agent does not know the op with field number ${field}`, {
    detail: { field: String(field) },
  });
};

const checkEnvelope = ({ requestId, scope, epoch }: ControlRequest): void => {
  const problems = [
    requestId === "" && "request_id is empty",
    requestId.length > LIMITS.requestIdChars &&
      `request_id is longer than ${LIMITS.requestIdChars} characters`,
    scope.length > LIMITS.scopeChars && `scope is longer than ${LIMITS.scopeChars} characters`,
    epoch < 0n && "epoch is negative",
  ].filter((problem) => problem !== false);
  if (problems.length > 0) throw new FarhandError("invalid", problems.join("; "));
};

const NEVER = new AbortController().signal;

/** Whoever asks all machines whether they are there. */
const NOBODY: Caller = { name: "", role: "reader", publicKey: "" };

/** Receive, decode, pass the steps, act: every message gets exactly one answer. */
export const createServe = ({ agent, steps, act, opRow, now, onDefect }: ServeOptions) => {
  const path = steps.reduceRight<Next>((next, step) => step(next), act);

  const encode = (requestId: string, result: ResponseResult): Uint8Array =>
    ControlResponse.encode({ requestId, agent, agentTimeMs: BigInt(Math.round(now())), result }).finish();

  const handle = async (request: ControlRequest, incoming: Incoming): Promise<ResponseResult> => {
    checkEnvelope(request);
    const op = opOf(request);
    const { mutates, scatter = false, anonymous = false } = opRow(op.$case);
    const caller = incoming.scatter && anonymous ? NOBODY : incoming.caller;
    if (caller instanceof FarhandError) throw caller;
    if (incoming.scatter && !scatter)
      throw new FarhandError("invalid", `${op.$case} cannot be asked of all machines at once`);
    const call: Call = {
      requestId: request.requestId,
      scope: request.scope,
      epoch: request.epoch,
      deadlineMs: Number(request.deadlineMs),
      issuedMs: Number(request.issuedMs),
      op,
      mutates,
      caller,
      signal: NEVER,
      maxReplyBytes: incoming.maxPayload - LIMITS.envelopeBytes,
    };
    return path(call);
  };

  const toError = (thrown: unknown, requestId: string): ResponseResult => {
    const fault = FarhandError.from(thrown);
    if (fault.code === "internal") onDefect(thrown, requestId);
    return { $case: "error", value: fault.toAgentError() };
  };

  return async (incoming: Incoming): Promise<Uint8Array> => {
    let requestId = "";
    let result: ResponseResult;
    try {
      const request = decode(incoming.data);
      requestId = request.requestId.slice(0, LIMITS.requestIdChars);
      result = await handle(request, incoming);
    } catch (thrown) {
      result = toError(thrown, requestId);
    }
    const reply = encode(requestId, result);
    if (reply.length <= incoming.maxPayload) return reply;
    const fault = new FarhandError(
      "too_large",
      `the answer measures ${reply.length} bytes, and one message may have ${incoming.maxPayload}`,
      {
        ran: result.$case !== "error" && opRow(result.$case).mutates ? "yes" : "no",
        detail: { bytes: String(reply.length), limit: String(incoming.maxPayload) },
      },
    );
    return encode(requestId, { $case: "error", value: fault.toAgentError() });
  };
};
