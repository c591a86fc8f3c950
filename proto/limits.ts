/** Limits that both sides must agree on, or that a reader of the docs will look for. */

const KIB = 1024;
const MIB = 1024 * KIB;

export const LIMITS = {
  /** A run's own time limit. */
  runTimeoutMs: { default: 30_000, max: 300_000 },
  /** Kept of each output stream of a run. */
  runOutputBytes: { default: 1 * MIB, max: 16 * MIB },
  /** Between TERM and KILL. */
  graceMs: { default: 2_000, max: 30_000 },
  /** How long after its time limit a run may take to answer. */
  runAnswerMs: 100,
  /** One page of a list. */
  listEntries: { default: 1_000, max: 10_000 },
  /** One read, when the caller names no length. */
  readBytes: { default: 128 * KIB },
  /** A caller that names no timeout waits this long. */
  callTimeoutMs: 10_000,
  /** A deadline further ahead than this is refused: it would keep its journal entry too long. */
  deadlineAheadMs: 3_600_000,
  /** A request issued further in the machine's future than this shows that clocks differ. */
  clockToleranceMs: 2_000,
  /** Commands at once. */
  processes: 64,
  /** Requests at once, of all kinds. */
  calls: 512,
  /** Kept back in a reply for the envelope around an op's own bytes. */
  envelopeBytes: 1 * KIB,
  /** Kept back in a message for the header that proves its sender. */
  proofBytes: 3 * KIB,
  requestIdChars: 128,
  scopeChars: 128,
  pathBytes: 4096,
  argvBytes: 128 * KIB,
  envBytes: 128 * KIB,
} as const;

export const PRESENCE = {
  heartbeatMs: 5_000,
  /** Heard of within this time, a silent machine is reconnecting, not offline. */
  seenMs: 30_000,
} as const;

/** A healthy cluster may answer "no responders" for a moment after a subscription was made. */
export const NO_RESPONDER_RETRIES_MS = [25, 100, 400] as const;

export const AUTHENTIC = {
  /** How far a hello's time may be from the machine's clock. */
  helloMs: 120_000,
  /** Callers' sessions that a machine remembers. */
  sessions: 4_096,
  sessionsPerCaller: 64,
} as const;

export const JOURNAL = {
  keepMs: 24 * 3_600_000,
  keepEntries: 10_000,
  keepBytes: 256 * MIB,
} as const;

/** Exit codes of farhand-agent that a service manager acts on. */
export const AGENT_EXIT = {
  ok: 0,
  failure: 1,
  usage: 64,
  /** Another instance runs on this machine with the same state. */
  alreadyRunning: 73,
  /** Another machine claimed this identity: do not restart. */
  superseded: 74,
  /** This machine was revoked: do not restart. */
  revoked: 77,
  /** This machine has not joined a workspace yet: do not restart. */
  notJoined: 78,
} as const;
