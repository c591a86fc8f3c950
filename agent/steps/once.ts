import { createHash } from "node:crypto";
import { FarhandError } from "../../proto/farhand-error.js";
import { ControlRequest, ControlResponse } from "../../proto/gen/envelope.js";
import type { Call, Next, ResponseResult, Step } from "../call.js";
import type { Journal } from "../store/journal.js";

/** What makes two requests the same request: who asks what, under which scope, not when. */
export const digestOfCall = ({ scope, op, caller }: Pick<Call, "scope" | "op" | "caller">): string =>
  createHash("sha256")
    .update(`${caller.publicKey}\n`)
    .update(
      ControlRequest.encode({ requestId: "", scope, epoch: 0n, deadlineMs: 0n, issuedMs: 0n, op }).finish(),
    )
    .digest("base64");

const encodeOutcome = (result: ResponseResult): Uint8Array =>
  ControlResponse.encode({ requestId: "", agent: undefined, agentTimeMs: 0n, result }).finish();

const otherBody = (requestId: string): FarhandError =>
  new FarhandError("conflict", `request id ${requestId} was used before for another request`, {
    detail: { requestId },
    advice: "give every new request an id of its own",
  });

export interface Once {
  /** Early in the path: a request id seen before is answered, joined or refused, and goes no further. */
  readonly recall: Step;
  /** Last before the op: from here on the request counts as begun. */
  readonly record: Step;
}

/**
 * Runs a request id at most once. Recall stands before every rule that says "did not run", since
 * a request sent again may have run long ago.
 */
export const once = (journal: Journal): Once => {
  const underWay = new Map<string, { digest: string; outcome: Promise<ResponseResult> | undefined }>();

  const recalled = (call: Call, key: string, digest: string): ResponseResult | undefined => {
    const entry = journal.lookup(key);
    if (entry === undefined) {
      if (call.issuedMs >= journal.horizonMs) return undefined;
      throw new FarhandError(
        "indeterminate",
        "the machine went down without a clean stop after this request was issued: it may have run before that",
      );
    }
    if (entry.digest !== digest) throw otherBody(call.requestId);
    if (entry.response === undefined) {
      throw new FarhandError(
        "indeterminate",
        "the agent stopped while this request was running: it may have run in part",
      );
    }
    const { result } = ControlResponse.decode(entry.response);
    if (result === undefined)
      throw new FarhandError("indeterminate", "the journal holds no outcome for this request");
    return result;
  };

  const recall: Step = (next) => async (call) => {
    if (!call.mutates) return next(call);
    const key = call.requestId;
    const digest = digestOfCall(call);
    const twin = underWay.get(key);
    if (twin?.outcome !== undefined) {
      if (twin.digest !== digest) throw otherBody(call.requestId);
      return twin.outcome;
    }
    const earlier = recalled(call, key, digest);
    if (earlier !== undefined) return earlier;
    const mine: { digest: string; outcome: Promise<ResponseResult> | undefined } = {
      digest,
      outcome: undefined,
    };
    underWay.set(key, mine);
    try {
      mine.outcome = next(call);
      return await mine.outcome;
    } finally {
      underWay.delete(key);
    }
  };

  const record: Step = (next: Next) => async (call) => {
    if (!call.mutates) return next(call);
    const key = call.requestId;
    const digest = underWay.get(key)?.digest ?? digestOfCall(call);
    journal.begin(key, { digest, deadlineMs: call.deadlineMs });
    let result: ResponseResult;
    try {
      result = await next(call);
    } catch (error) {
      const fault = FarhandError.from(error);
      journal.end(key, encodeOutcome({ $case: "error", value: fault.toAgentError() }));
      throw fault;
    }
    journal.end(key, encodeOutcome(result));
    return result;
  };

  return { recall, record };
};
