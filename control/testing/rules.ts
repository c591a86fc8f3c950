import { FarhandError } from "../../proto/farhand-error.js";
import type { ControlRequest } from "../../proto/gen/envelope.js";
import { LIMITS } from "../../proto/limits.js";
import { fenceDecision } from "./fence.js";
import type { OpRow } from "./op-rows.js";
import type { Switches } from "./switches.js";

export const checkEnvelope = ({ requestId, scope, epoch }: ControlRequest): void => {
  const problems = [
    requestId === "" && "request_id is empty",
    requestId.length > LIMITS.requestIdChars &&
      `request_id is longer than ${LIMITS.requestIdChars} characters`,
    scope.length > LIMITS.scopeChars && `scope is longer than ${LIMITS.scopeChars} characters`,
    epoch < 0n && "epoch is negative",
  ].filter((problem) => problem !== false);
  if (problems.length > 0) throw new FarhandError("invalid", problems.join("; "));
};

/** Throws unless a request may begin; the fence moves on with the requests that pass it. */
export type Rules = (request: ControlRequest, row: OpRow) => void;

export const createRules = (now: () => number, switches: () => Switches): Rules => {
  const held = new Map<string, bigint>();
  return ({ scope, epoch, deadlineMs }, { mutates, family }) => {
    if (Number(deadlineMs) < now()) {
      throw new FarhandError("expired", "the deadline had passed when the request was about to start", {
        detail: { machineTime: new Date(now()).toISOString() },
      });
    }
    const { draining, consentRequired } = switches();
    if (draining && mutates)
      throw new FarhandError("draining", "the agent is shutting down and takes no new work");
    const stands = fenceDecision(held.get(scope), { scope, epoch, mutates });
    if (stands !== undefined) held.set(scope, stands);
    if (family !== undefined && consentRequired.includes(family)) {
      throw new FarhandError("consent_required", `the owner has not consented to ${family}`, {
        detail: { capability: family },
      });
    }
  };
};
