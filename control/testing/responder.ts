import { FarhandError } from "../../proto/farhand-error.js";
import { ControlRequest, ControlResponse } from "../../proto/gen/envelope.js";
import { LIMITS } from "../../proto/limits.js";
import { VERSION } from "../../proto/version.js";
import type { RequestOp, ResponseResult } from "../envelope.js";
import { createOnce } from "./once.js";
import { notPlayed, opRow } from "./op-rows.js";
import type { Requests } from "./requests.js";
import { checkEnvelope, type Rules } from "./rules.js";

export interface ResponderOptions {
  readonly instanceId: string;
  readonly now: () => number;
  readonly maxPayload: number;
  readonly rules: Rules;
  readonly requests: Requests;
  /** Does what is asked; undefined for an op that it does not know. */
  readonly act: (op: RequestOp, signal: AbortSignal) => Promise<ResponseResult | undefined>;
}

/** Takes the bytes of a request and gives the bytes of its one answer. */
export type Responder = (payload: Uint8Array) => Promise<Uint8Array>;

const NEVER = new AbortController().signal;

const decode = (payload: Uint8Array): ControlRequest => {
  try {
    return ControlRequest.decode(payload);
  } catch (error) {
    throw new FarhandError("protocol", "the request is not a ControlRequest", { cause: error });
  }
};

/** Decode, pass the rules, act, as an agent does. */
export const createResponder = ({
  instanceId,
  now,
  maxPayload,
  rules,
  requests,
  act,
}: ResponderOptions): Responder => {
  const once = createOnce();
  const running = new Map<string, AbortController>();

  const perform = async (op: RequestOp, signal: AbortSignal): Promise<ResponseResult> => {
    if (op.$case === "cancel") {
      const found = running.get(op.value.requestId);
      found?.abort();
      return { $case: "cancel", value: { found: found !== undefined } };
    }
    const result = await act(op, signal);
    if (result === undefined) throw notPlayed(op.$case);
    return result;
  };

  const handle = async (request: ControlRequest, op: RequestOp): Promise<ResponseResult> => {
    checkEnvelope(request);
    const row = opRow(op.$case);
    if (!row.mutates) {
      rules(request, row);
      return perform(op, NEVER);
    }
    const { requestId, scope } = request;
    return once.answer({ requestId, scope, op }, async (begin) => {
      rules(request, row);
      begin();
      const controller = new AbortController();
      running.set(requestId, controller);
      try {
        return await perform(op, controller.signal);
      } finally {
        running.delete(requestId);
      }
    });
  };

  const encode = (requestId: string, result: ResponseResult): Uint8Array =>
    ControlResponse.encode({
      requestId,
      agent: { instanceId, version: VERSION },
      agentTimeMs: BigInt(Math.round(now())),
      result,
    }).finish();

  const encodeFault = (requestId: string, fault: FarhandError): Uint8Array =>
    encode(requestId, { $case: "error", value: fault.toAgentError() });

  return async (payload) => {
    let requestId = "";
    try {
      const request = decode(payload);
      requestId = request.requestId.slice(0, LIMITS.requestIdChars);
      const { op } = request;
      if (op === undefined)
        throw new FarhandError("unsupported", "the request names no op that this version knows");
      const reply = encode(requestId, await requests.keep(request, op, handle(request, op)));
      if (reply.length <= maxPayload) return reply;
      throw new FarhandError(
        "too_large",
        `the answer measures ${reply.length} bytes, and one message may have ${maxPayload}`,
        {
          ran: opRow(op.$case).mutates ? "yes" : "no",
          detail: { bytes: String(reply.length), limit: String(maxPayload) },
        },
      );
    } catch (error) {
      return encodeFault(requestId, FarhandError.from(error));
    }
  };
};
