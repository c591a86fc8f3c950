/**
 * Everything that can go wrong, in one table. The wire code, the SDK error, the HTTP
 * problem document, the CLI exit code and docs/faults.md all follow from it.
 */

/** Can the request have had an effect? */
export type Ran = "no" | "maybe" | "yes";

/** What a caller may do about it. */
export type Retry = "later" | "same id" | "re-resolve" | "ask the owner" | "new request" | "no";

export interface FaultRow {
  readonly title: string;
  /** The default; an error that knows better carries its own. */
  readonly ran: Ran;
  readonly retry: Retry;
  readonly http: number;
  /** Exit code of the CLI. */
  readonly exit: number;
  /** Why a capability or machine cannot be used, where that is what the fault says. */
  readonly reason?: string;
  readonly advice: string;
}

export const FAULTS = {
  agent_offline: {
    title: "The machine is offline",
    ran: "no",
    retry: "later",
    http: 503,
    exit: 69,
    reason: "agent_offline",
    advice: "start farhand-agent on the machine, or check its network",
  },
  agent_reconnecting: {
    title: "The machine does not answer right now",
    ran: "no",
    retry: "same id",
    http: 503,
    exit: 75,
    reason: "agent_reconnecting",
    advice: "it was there moments ago: send again with the same request id",
  },
  control_unavailable: {
    title: "The bus cannot be reached from here",
    ran: "no",
    retry: "later",
    http: 503,
    exit: 68,
    advice: "check that nats-server runs (farhand up) and that its address and credentials are right",
  },
  fenced: {
    title: "The lease has moved on",
    ran: "no",
    retry: "re-resolve",
    http: 409,
    exit: 79,
    advice: "somebody else holds the lease now: look the machine up and acquire it again",
  },
  draining: {
    title: "The agent is shutting down",
    ran: "no",
    retry: "later",
    http: 503,
    exit: 80,
    advice: "it takes no new work: try again when it has started again",
  },
  busy: {
    title: "The machine is at a limit",
    ran: "no",
    retry: "later",
    http: 429,
    exit: 81,
    advice: "wait until something ends, or ask for the limit to be raised",
  },
  consent_required: {
    title: "The owner has not consented",
    ran: "no",
    retry: "ask the owner",
    http: 403,
    exit: 82,
    reason: "consent_required",
    advice: "ask the owner of the machine to grant consent there",
  },
  denied: {
    title: "Not permitted on this machine",
    ran: "no",
    retry: "no",
    http: 403,
    exit: 77,
    advice: "only the owner of the machine can permit this",
  },
  display_unavailable: {
    title: "The machine has no display to use",
    ran: "no",
    retry: "no",
    http: 409,
    exit: 83,
    reason: "display_unavailable",
    advice: "run farhand-agent doctor on the machine to see what is missing",
  },
  invalid: {
    title: "The request is not valid",
    ran: "no",
    retry: "no",
    http: 400,
    exit: 64,
    advice: "correct what the message names and send a new request",
  },
  not_found: {
    title: "No such thing on the machine",
    ran: "no",
    retry: "no",
    http: 404,
    exit: 66,
    advice: "the machine answered, but the path, command or process is not there: check its name",
  },
  conflict: {
    title: "Something else is there",
    ran: "no",
    retry: "no",
    http: 409,
    exit: 84,
    advice: "look at the present state and decide again",
  },
  unsupported: {
    title: "The agent cannot do this",
    ran: "no",
    retry: "no",
    http: 501,
    exit: 85,
    advice: "update farhand-agent on the machine, or ask describe what it can do",
  },
  too_large: {
    title: "Too large for one message",
    ran: "no",
    retry: "no",
    http: 413,
    exit: 86,
    advice: "ask for less at once, or send it in parts",
  },
  expired: {
    title: "The request came too late",
    ran: "no",
    retry: "new request",
    http: 504,
    exit: 87,
    advice: "its deadline had passed before it could start, so nothing was done: send a new request",
  },
  timeout: {
    title: "The operation's own time limit passed",
    ran: "yes",
    retry: "no",
    http: 504,
    exit: 88,
    advice: "allow it more time, or do less at once",
  },
  indeterminate: {
    title: "Nobody knows whether it ran",
    ran: "maybe",
    retry: "no",
    http: 500,
    exit: 89,
    advice: "the agent stopped between start and finish: look at the machine before you decide what to do",
  },
  os: {
    title: "The operating system refused",
    ran: "yes",
    retry: "no",
    http: 500,
    exit: 71,
    advice: "the errno in the detail says why; mend it on the machine",
  },
  protocol: {
    title: "The two sides do not understand each other",
    ran: "no",
    retry: "no",
    http: 502,
    exit: 76,
    advice: "bring agent and control to versions that match",
  },
  internal: {
    title: "A defect in farhand",
    ran: "no",
    retry: "no",
    http: 500,
    exit: 70,
    advice: "the agent's log has the details: please report it",
  },
  unauthenticated: {
    title: "The caller could not be verified",
    ran: "no",
    retry: "no",
    http: 401,
    exit: 78,
    advice: "check the credentials; create new ones with farhand creds create",
  },
} as const satisfies Record<string, FaultRow>;

export type FaultCode = keyof typeof FAULTS;

export const isFaultCode = (code: string): code is FaultCode => Object.hasOwn(FAULTS, code);

export const faultRow = (code: FaultCode): FaultRow => FAULTS[code];

export const isRetryable = (code: FaultCode): boolean => {
  const { retry } = faultRow(code);
  return retry === "later" || retry === "same id" || retry === "re-resolve";
};
