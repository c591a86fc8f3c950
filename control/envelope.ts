import { FarhandError } from "../proto/farhand-error.js";
import { ControlRequest, ControlResponse } from "../proto/gen/envelope.js";

export type RequestOp = NonNullable<ControlRequest["op"]>;
export type ResponseResult = NonNullable<ControlResponse["result"]>;

/** An op's one name, as it stands in the proto. */
export type OpName = RequestOp["$case"];
export type OpRequest<K extends OpName> = Extract<RequestOp, { $case: K }>;
export type ResultOf<K extends OpName> = Extract<ResponseResult, { $case: K }>["value"];

/** Under which lease a request is made; see the fence. */
export interface Fence {
  readonly scope: string;
  readonly epoch: bigint;
}

export const NO_FENCE: Fence = { scope: "", epoch: 0n };

export interface Envelope {
  readonly requestId: string;
  readonly fence: Fence;
  /** On the machine's clock, as far as it is known. */
  readonly issuedMs: number;
  readonly timeoutMs: number;
  readonly op: RequestOp;
}

export const encodeRequest = ({ requestId, fence, issuedMs, timeoutMs, op }: Envelope): Uint8Array =>
  ControlRequest.encode({
    requestId,
    scope: fence.scope,
    epoch: fence.epoch,
    deadlineMs: BigInt(Math.round(issuedMs + timeoutMs)),
    issuedMs: BigInt(Math.round(issuedMs)),
    op,
  }).finish();

/** Where an answer came from and what it should answer. */
export interface Place {
  readonly machine: string;
  readonly requestId: string;
}

export interface Answer {
  readonly result: ResponseResult;
  /** The machine's clock. */
  readonly agentTimeMs: number;
}

/** Reads an answer, or throws `protocol`: what cannot be understood is not silence. */
export const decodeAnswer = (payload: Uint8Array, place: Place): Answer => {
  const fault = (says: string, cause?: unknown): FarhandError =>
    new FarhandError("protocol", `${place.machine} answered ${says}`, { ran: "maybe", cause, ...place });
  let response: ControlResponse;
  try {
    response = ControlResponse.decode(payload);
  } catch (error) {
    throw fault("with bytes that are not a ControlResponse", error);
  }
  const { result, requestId } = response;
  // A request that could not be decoded is answered without an id.
  const isAnonymous = requestId === "" && result?.$case === "error";
  if (requestId !== place.requestId && !isAnonymous) {
    throw fault(`another request (${JSON.stringify(requestId.slice(0, 80))})`);
  }
  if (result === undefined) throw fault("with no result that this version knows");
  return { result, agentTimeMs: Number(response.agentTimeMs) };
};

/** The result of the op that was asked, or the error that was answered. */
export const resultOf = <K extends OpName>(name: K, { result }: Answer, place: Place): ResultOf<K> => {
  if (result.$case === "error") throw FarhandError.fromAgentError(result.value, place);
  if (result.$case !== name) {
    throw new FarhandError("protocol", `${place.machine} answered ${name} with ${result.$case}`, {
      ran: "maybe",
      ...place,
    });
  }
  // The case was just compared, which the compiler cannot follow through a type parameter.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return result.value as ResultOf<K>;
};
