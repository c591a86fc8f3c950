import { type FaultCode, type Ran, faultRow, isFaultCode, isRetryable } from "./faults.js";
import type { AgentError } from "./gen/envelope.js";

export interface FarhandErrorFields {
  /** Only where it is known better than the table's default. */
  readonly ran?: Ran | undefined;
  readonly machine?: string | undefined;
  readonly requestId?: string | undefined;
  readonly detail?: Readonly<Record<string, string>> | undefined;
  readonly advice?: string | undefined;
  readonly cause?: unknown;
}

/** The one error of farhand; what follows from its code is in the fault table. */
export class FarhandError extends Error {
  override readonly name = "FarhandError";
  readonly code: FaultCode;
  /** Can the request have had an effect? */
  readonly ran: Ran;
  readonly machine: string | undefined;
  readonly requestId: string | undefined;
  readonly detail: Readonly<Record<string, string>>;
  /** What to do next. */
  readonly advice: string;

  constructor(code: FaultCode, message: string, fields: FarhandErrorFields = {}) {
    super(message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.code = code;
    this.ran = fields.ran ?? faultRow(code).ran;
    this.machine = fields.machine;
    this.requestId = fields.requestId;
    this.detail = fields.detail ?? {};
    this.advice = fields.advice ?? faultRow(code).advice;
  }

  /** Why the machine or a capability cannot be used, if that is what this error says. */
  get reason(): string | undefined {
    return faultRow(this.code).reason;
  }

  /** True when the same request may be sent again, with the same request id. */
  get retryable(): boolean {
    return isRetryable(this.code);
  }

  /** The same error, with the machine and request it belongs to. */
  at(place: { machine: string; requestId?: string | undefined }): FarhandError {
    return new FarhandError(this.code, this.message, {
      ran: this.ran,
      machine: place.machine,
      requestId: place.requestId ?? this.requestId,
      detail: this.detail,
      advice: this.advice,
      cause: this.cause,
    });
  }

  toAgentError(): AgentError {
    return {
      code: this.code,
      message: this.message,
      retryable: this.retryable,
      ran: this.ran,
      detail: { ...this.detail },
      advice: this.advice,
    };
  }

  static fromAgentError(error: AgentError, place: { machine: string; requestId: string }): FarhandError {
    const ran: Ran = error.ran === "no" || error.ran === "maybe" || error.ran === "yes" ? error.ran : "maybe";
    const advice = error.advice === "" ? undefined : error.advice;
    const fields = { ran, advice, detail: error.detail, ...place };
    if (isFaultCode(error.code)) return new FarhandError(error.code, error.message, fields);
    const message = `the agent answered with an error code that this version does not know: ${error.code}: ${error.message}`;
    return new FarhandError("protocol", message, fields);
  }

  /** Anything thrown, as the one error: what is not ours is a defect of ours. */
  static from(thrown: unknown): FarhandError {
    if (thrown instanceof FarhandError) return thrown;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new FarhandError("internal", message, { ran: "maybe", cause: thrown });
  }
}
