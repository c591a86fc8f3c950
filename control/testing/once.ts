import { createHash } from "node:crypto";
import { FarhandError } from "../../proto/farhand-error.js";
import { ControlRequest } from "../../proto/gen/envelope.js";
import type { RequestOp, ResponseResult } from "../envelope.js";

export interface OnceRequest {
  readonly requestId: string;
  readonly scope: string;
  readonly op: RequestOp;
}

export interface Once {
  /**
   * Answers a request id seen before with what became of it, or joins it while it runs. A run that
   * fails before it says `begin` did not happen, and leaves nothing behind.
   */
  answer(request: OnceRequest, run: (begin: () => void) => Promise<ResponseResult>): Promise<ResponseResult>;
}

/** What makes two requests the same: what is asked and under which scope, not when. */
const digestOf = ({ scope, op }: OnceRequest): string =>
  createHash("sha256")
    .update(
      ControlRequest.encode({ requestId: "", scope, epoch: 0n, deadlineMs: 0n, issuedMs: 0n, op }).finish(),
    )
    .digest("base64");

export const createOnce = (): Once => {
  const seen = new Map<string, { digest: string; outcome: Promise<ResponseResult> }>();
  return {
    async answer(request, run) {
      const { requestId } = request;
      const digest = digestOf(request);
      const earlier = seen.get(requestId);
      if (earlier !== undefined) {
        if (earlier.digest === digest) return earlier.outcome;
        throw new FarhandError("conflict", `request id ${requestId} was used before for another request`, {
          detail: { requestId },
        });
      }
      let hasBegun = false;
      const outcome = run(() => (hasBegun = true));
      seen.set(requestId, { digest, outcome });
      try {
        return await outcome;
      } catch (error) {
        if (!hasBegun) seen.delete(requestId);
        throw error;
      }
    },
  };
};
