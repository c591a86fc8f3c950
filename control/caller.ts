import { setTimeout as delay } from "node:timers/promises";
import { FarhandError } from "../proto/farhand-error.js";
import { ControlRequest, ControlResponse } from "../proto/gen/envelope.js";
import { SeenQuery, SeenReply } from "../proto/gen/machine.js";
import { LIMITS } from "../proto/limits.js";
import { formatMachineRef, type MachineRef, subjects } from "../proto/subjects.js";
import { liveness } from "./liveness.js";
import { newRequestId } from "./request-id.js";
import { afterSilence, FIRST_ATTEMPT } from "./retry.js";
import type { ControlRpc, Outcome } from "./rpc.js";

export type RequestOp = NonNullable<ControlRequest["op"]>;
type ResponseResult = NonNullable<ControlResponse["result"]>;
export type OpName = RequestOp["$case"];
export type ResultOf<K extends OpName> = Extract<ResponseResult, { $case: K }>["value"];

/** Under which lease a request is made; see the fence. */
export interface Fence {
  readonly scope: string;
  readonly epoch: bigint;
}

export const NO_FENCE: Fence = { scope: "", epoch: 0n };

export interface CallOptions {
  /** How long to wait for the answer. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** To send a request again that was sent before: it runs at most once. */
  readonly requestId?: string | undefined;
}

export interface Clock {
  /** Unix milliseconds. */
  now(): number;
  /** Milliseconds that only grow. */
  monotonic(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const SYSTEM_CLOCK: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    delay(ms, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
      throw signal?.reason ?? error;
    }),
};

export interface Caller {
  call<K extends OpName>(ref: MachineRef, op: Extract<RequestOp, { $case: K }>, options: CallOptions & { fence?: Fence }): Promise<ResultOf<K>>;
}

const SEEN_MS = 500;
const CANCEL_MS = 2_000;
/** A difference of clocks smaller than this is left to the network. */
const SKEW_FLOOR_MS = 500;

const decodeReply = (payload: Uint8Array, place: { machine: string; requestId: string }): ControlResponse & { result: ResponseResult } => {
  let response: ControlResponse;
  try {
    response = ControlResponse.decode(payload);
  } catch (error) {
    throw new FarhandError("protocol", `${place.machine} answered with bytes that are not a ControlResponse`, { ran: "maybe", cause: error, ...place });
  }
  const { result } = response;
  // A request that could not be decoded is answered without an id.
  const isAnonymous = response.requestId === "" && result?.$case === "error";
  if (response.requestId !== place.requestId && !isAnonymous) {
    throw new FarhandError("protocol", `${place.machine} answered another request (${JSON.stringify(response.requestId.slice(0, 80))})`, { ran: "maybe", ...place });
  }
  if (result === undefined) throw new FarhandError("protocol", `${place.machine} answered with no result that this version knows`, { ran: "maybe", ...place });
  return { ...response, result };
};

/** Sends requests by subject and decides what silence means. */
export const createCaller = (rpc: ControlRpc, clock: Clock = SYSTEM_CLOCK): Caller => {
  /** Machine's clock minus ours, learned from answers. */
  const skews = new Map<string, number>();
  /** When we last heard of a machine ourselves, on the monotonic clock. */
  const heard = new Map<string, number>();

  const learn = (machine: string, agentTimeMs: bigint): boolean => {
    const skew = Number(agentTimeMs) - clock.now();
    const before = skews.get(machine) ?? 0;
    skews.set(machine, Math.abs(skew) < SKEW_FLOOR_MS ? 0 : skew);
    heard.set(machine, clock.monotonic());
    return Math.abs(skew - before) > SKEW_FLOOR_MS;
  };

  const seenAgo = async (ref: MachineRef): Promise<number | undefined> => {
    const machine = formatMachineRef(ref);
    const own = heard.get(machine);
    const ownAgo = own === undefined ? undefined : clock.monotonic() - own;
    const payload = SeenQuery.encode({ machine: ref.machine }).finish();
    const outcome = await rpc.exchange({ subject: subjects.seen(ref.workspace), payload, timeoutMs: SEEN_MS });
    // Without a control plane we only know what we have seen ourselves.
    if (outcome.kind !== "reply") return ownAgo;
    const { ageMs, goodbye } = SeenReply.decode(outcome.payload);
    if (goodbye) return undefined;
    return ageMs === undefined ? ownAgo : Math.min(ownAgo ?? Infinity, Number(ageMs));
  };

  const nobodyListens = async (ref: MachineRef, ran: "no" | "maybe", requestId: string): Promise<FarhandError> => {
    const machine = formatMachineRef(ref);
    const seenAgoMs = await seenAgo(ref);
    const state = liveness({ enrolled: true, probe: "missed", seenAgoMs });
    const when = seenAgoMs === undefined ? "" : `; it was last heard of ${Math.round(seenAgoMs / 1000)} s ago`;
    if (state === "agent_reconnecting") {
      return new FarhandError("agent_reconnecting", `${machine} is not connected right now${when}`, { ran, machine, requestId });
    }
    return new FarhandError("agent_offline", `${machine} is offline${when}`, { ran, machine, requestId });
  };

  const unanswered = (code: "agent_reconnecting" | "control_unavailable", outcome: Outcome, place: { machine: string; requestId: string; timeoutMs: number; ran: "no" | "maybe" }): FarhandError => {
    const { machine, requestId, timeoutMs, ran } = place;
    if (code === "agent_reconnecting") {
      return new FarhandError(code, `${machine} did not answer within ${timeoutMs} ms; the request may have run`, { ran, machine, requestId });
    }
    const because = outcome.kind === "unavailable" ? outcome.because : "it does not answer";
    return new FarhandError(code, `the bus cannot be reached: ${because}`, { ran, machine, requestId });
  };

  const cancel = (ref: MachineRef, requestId: string, fence: Fence): void => {
    const request = envelope({ $case: "cancel", value: { requestId } }, { ref, requestId: newRequestId(clock.now()), timeoutMs: CANCEL_MS, fence });
    void rpc.exchange({ subject: subjects.rpc(ref), payload: request, timeoutMs: CANCEL_MS }).catch(() => undefined);
  };

  const envelope = (op: RequestOp, { ref, requestId, timeoutMs, fence }: { ref: MachineRef; requestId: string; timeoutMs: number; fence: Fence }): Uint8Array => {
    const issuedMs = Math.round(clock.now() + (skews.get(formatMachineRef(ref)) ?? 0));
    return ControlRequest.encode({ requestId, ...fence, deadlineMs: BigInt(issuedMs + timeoutMs), issuedMs: BigInt(issuedMs), op }).finish();
  };

  return {
    async call<K extends OpName>(ref: MachineRef, op: Extract<RequestOp, { $case: K }>, options: CallOptions & { fence?: Fence }) {
      const { timeoutMs = LIMITS.callTimeoutMs, signal, requestId = newRequestId(clock.now()), fence = NO_FENCE } = options;
      const machine = formatMachineRef(ref);
      const subject = subjects.rpc(ref);
      const endsAt = clock.monotonic() + timeoutMs;
      let payload = envelope(op, { ref, requestId, timeoutMs, fence });
      let attempt = FIRST_ATTEMPT;
      let mayCorrectClock = true;

      for (;;) {
        const remainingMs = Math.max(1, Math.round(endsAt - clock.monotonic()));
        let outcome: Outcome;
        try {
          outcome = await rpc.exchange({ subject, payload, timeoutMs: remainingMs, signal });
        } catch (error) {
          if (signal?.aborted === true && op.$case === "procRun") cancel(ref, requestId, fence);
          throw error;
        }
        if (outcome.kind === "too_large") {
          throw new FarhandError("too_large", `the request measures ${payload.length} bytes, and one message may have ${outcome.limit}`, {
            machine,
            requestId,
            detail: { bytes: String(payload.length), limit: String(outcome.limit) },
          });
        }
        if (outcome.kind === "reply") {
          const { result, agentTimeMs } = decodeReply(outcome.payload, { machine, requestId });
          const isNews = learn(machine, agentTimeMs);
          if (result.$case === op.$case) return result.value as ResultOf<K>;
          if (result.$case !== "error") {
            throw new FarhandError("protocol", `${machine} answered ${op.$case} with ${result.$case}`, { ran: "maybe", machine, requestId });
          }
          // Refused for its time alone, it did not run: with the machine's clock known, it can.
          if (result.value.code === "expired" && isNews && mayCorrectClock && clock.monotonic() < endsAt) {
            mayCorrectClock = false;
            payload = envelope(op, { ref, requestId, timeoutMs: Math.round(endsAt - clock.monotonic()), fence });
            continue;
          }
          throw FarhandError.fromAgentError(result.value, { machine, requestId });
        }
        const verdict = afterSilence(attempt, outcome);
        if (verdict.do === "ask_presence") throw await nobodyListens(ref, verdict.ran, requestId);
        if (verdict.do === "fail") throw unanswered(verdict.code, outcome, { machine, requestId, timeoutMs, ran: verdict.ran });
        if (clock.monotonic() + verdict.afterMs >= endsAt) {
          if (outcome.kind === "no_responders") throw await nobodyListens(ref, verdict.attempt.mayHaveRun ? "maybe" : "no", requestId);
          throw unanswered("control_unavailable", outcome, { machine, requestId, timeoutMs, ran: verdict.attempt.mayHaveRun ? "maybe" : "no" });
        }
        attempt = verdict.attempt;
        await clock.sleep(verdict.afterMs, signal);
      }
    },
  };
};
