import { FarhandError } from "../proto/farhand-error.js";
import type { FaultCode } from "../proto/faults.js";
import { LIMITS } from "../proto/limits.js";
import { formatMachineRef, type MachineRef, subjects } from "../proto/subjects.js";
import type { Clock } from "./clock.js";
import type { Credentials } from "./credentials.js";
import {
  type Answer,
  decodeAnswer,
  encodeRequest,
  type Fence,
  NO_FENCE,
  type OpName,
  type OpRequest,
  type RequestOp,
  resultOf,
  type ResultOf,
} from "./envelope.js";
import { liveness } from "./liveness.js";
import { createRequestIds } from "./request-id.js";
import { afterSilence, type Attempt, FIRST_ATTEMPT } from "./retry.js";
import type { ControlRpc, Exchange, Outcome, Silence } from "./rpc.js";
import { createSessions } from "./sessions.js";
import { createSightings } from "./sightings.js";

export interface CallOptions {
  /** How long to wait for the answer. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** To send a request again that was sent before: it runs at most once. */
  readonly requestId?: string | undefined;
}

export interface Caller {
  call<K extends OpName>(
    ref: MachineRef,
    op: OpRequest<K>,
    options: CallOptions & { fence?: Fence },
  ): Promise<ResultOf<K>>;
}

/** One request, from its first send to its end. */
interface Request {
  readonly ref: MachineRef;
  readonly machine: string;
  readonly requestId: string;
  readonly fence: Fence;
  readonly op: RequestOp;
  readonly timeoutMs: number;
  /** On the monotonic clock. */
  readonly endsAt: number;
  readonly signal: AbortSignal | undefined;
}

const CANCEL_MS = 2_000;

const unavailable = (
  outcome: Outcome,
  ran: "no" | "maybe",
  { machine, requestId }: Request,
): FarhandError => {
  const because = outcome.kind === "unavailable" ? outcome.because : "it does not answer";
  return new FarhandError("control_unavailable", `the bus cannot be reached: ${because}`, {
    ran,
    machine,
    requestId,
  });
};

const noAnswer = (request: Request, ran: "no" | "maybe", forged = 0): FarhandError => {
  const { machine, requestId, timeoutMs } = request;
  const ignored = forged === 0 ? "" : `; ${forged} answers that it did not prove to be its own were ignored`;
  const says = `${machine} did not answer within ${Math.round(timeoutMs)} ms; the request may have run${ignored}`;
  return new FarhandError("agent_reconnecting", says, { ran, machine, requestId });
};

const isCode = ({ result }: Answer, code: FaultCode): boolean =>
  result.$case === "error" && result.value.code === code;

const tooLarge = (bytes: number, limit: number, { machine, requestId }: Request): FarhandError =>
  new FarhandError("too_large", `the request measures ${bytes} bytes, and one message may have ${limit}`, {
    machine,
    requestId,
    detail: { bytes: String(bytes), limit: String(limit) },
  });

const refused = (because: string, { machine, requestId }: Request): FarhandError =>
  new FarhandError("unauthenticated", `the bus does not accept our credentials: ${because}`, {
    machine,
    requestId,
  });

export interface CallerOptions {
  readonly rpc: ControlRpc;
  readonly clock: Clock;
  /** Without any it is left to the bus who may reach a machine, and who may answer. */
  readonly credentials?: Credentials | undefined;
}

/** Sends requests by subject and decides what silence means. */
export const createCaller = ({ rpc, clock, credentials }: CallerOptions): Caller => {
  const sightings = createSightings(rpc, clock);
  const newRequestId = createRequestIds();
  const sessions =
    credentials === undefined
      ? undefined
      : createSessions({ credentials, now: clock.now, skewMs: (machine) => sightings.skewMs(machine) });

  const send = (
    ref: MachineRef,
    payload: Uint8Array,
    options: Pick<Exchange, "timeoutMs" | "signal">,
  ): Promise<Outcome> => {
    const subject = subjects.rpc(ref);
    const prove = sessions && ((reply: string) => sessions.prove(ref, { subject, reply, payload }));
    return rpc.exchange({ subject, payload, prove, ...options });
  };

  /** The request as it goes out, with its deadline on the machine's clock. */
  const encode = (request: Request, skewMs: number): Uint8Array =>
    encodeRequest({
      requestId: request.requestId,
      fence: request.fence,
      issuedMs: clock.now() + skewMs,
      timeoutMs: Math.max(1, request.endsAt - clock.monotonic()),
      op: request.op,
    });

  const nobodyListens = async ({ ref, machine, requestId }: Request): Promise<FarhandError> => {
    const seenAgoMs = await sightings.seenAgoMs(ref);
    const state = liveness({ enrolled: true, probe: "missed", seenAgoMs });
    const when =
      seenAgoMs === undefined ? "" : `; it was last heard of ${Math.round(seenAgoMs / 1000)} s ago`;
    return state === "agent_reconnecting"
      ? new FarhandError(state, `${machine} is not connected right now${when}`, { machine, requestId })
      : new FarhandError("agent_offline", `${machine} is offline${when}`, { machine, requestId });
  };

  /** Waits for the next attempt, or throws what the silence means. */
  const afterNoAnswer = async (request: Request, attempt: Attempt, outcome: Silence): Promise<Attempt> => {
    const verdict = afterSilence(attempt, outcome);
    if (verdict.do === "ask_presence") throw await nobodyListens(request);
    if (verdict.do === "fail") {
      if (verdict.code === "control_unavailable") throw unavailable(outcome, verdict.ran, request);
      throw noAnswer(request, verdict.ran, outcome.kind === "timeout" ? outcome.forged : 0);
    }
    if (clock.monotonic() + verdict.afterMs >= request.endsAt) {
      if (outcome.kind !== "no_responders") throw unavailable(outcome, "maybe", request);
      throw attempt.mayHaveRun ? noAnswer(request, "maybe") : await nobodyListens(request);
    }
    await clock.sleep(verdict.afterMs, request.signal);
    return verdict.attempt;
  };

  /** Ends on the machine what its caller has given up; nobody waits for how that goes. */
  const cancel = ({ ref, machine, requestId, fence }: Request): void => {
    const payload = encodeRequest({
      requestId: newRequestId(clock.now()),
      fence,
      issuedMs: clock.now() + sightings.skewMs(machine),
      timeoutMs: CANCEL_MS,
      op: { $case: "cancel", value: { requestId } },
    });
    void send(ref, payload, { timeoutMs: CANCEL_MS });
  };

  const exchange = async (request: Request, payload: Uint8Array): Promise<Outcome> => {
    const timeoutMs = Math.max(1, Math.round(request.endsAt - clock.monotonic()));
    const { signal } = request;
    try {
      return await send(request.ref, payload, { timeoutMs, signal });
    } catch (error) {
      if (signal?.aborted === true && request.op.$case === "procRun") cancel(request);
      throw error;
    }
  };

  const answerTo = async (request: Request): Promise<Answer> => {
    let skewMs = sightings.skewMs(request.machine);
    let payload = encode(request, skewMs);
    let attempt = FIRST_ATTEMPT;
    let mayCorrectClock = true;
    let maySayHello = true;
    for (;;) {
      const outcome = await exchange(request, payload);
      if (outcome.kind === "too_large") throw tooLarge(payload.length, outcome.limit, request);
      if (outcome.kind === "refused") throw refused(outcome.because, request);
      if (outcome.kind !== "reply") {
        attempt = await afterNoAnswer(request, attempt, outcome);
        continue;
      }
      const answer = decodeAnswer(outcome.payload, request);
      sightings.note(request.machine, answer.agentTimeMs);
      if (maySayHello && isCode(answer, "unauthenticated") && sessions?.has(request.ref) === true) {
        // The agent has started anew and did not run it: the next one says hello.
        maySayHello = false;
        sessions.drop(request.ref);
        continue;
      }
      const learned = sightings.skewMs(request.machine);
      const isLate = clock.monotonic() >= request.endsAt;
      if (!isCode(answer, "expired") || learned === skewMs || !mayCorrectClock || isLate) return answer;
      // Refused for its time alone, it did not run: with the machine's clock known, it can.
      mayCorrectClock = false;
      skewMs = learned;
      payload = encode(request, skewMs);
    }
  };

  return {
    async call(ref, op, options) {
      const { timeoutMs = LIMITS.callTimeoutMs, requestId = newRequestId(clock.now()) } = options;
      const request: Request = {
        ref,
        machine: formatMachineRef(ref),
        requestId,
        fence: options.fence ?? NO_FENCE,
        op,
        timeoutMs,
        endsAt: clock.monotonic() + timeoutMs,
        signal: options.signal,
      };
      return resultOf(op.$case, await answerTo(request), request);
    },
  };
};
