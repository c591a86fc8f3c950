import * as z from "zod";
import { FarhandError } from "../proto/farhand-error.js";
import { OutputKeep, type Output, ProcEnd_Reason, type ProcRunResult } from "../proto/gen/process.js";
import { LIMITS } from "../proto/limits.js";
import type { CallOptions } from "./caller.js";
import type { MachineCall } from "./machine.js";
import { bytes, callFields, int64, readOptions } from "./options.js";

export interface RunOptions extends CallOptions {
  /** Relative to the machine's root. */
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly stdin?: string | Uint8Array | undefined;
  /** After this long the whole process tree is ended, and what it printed is returned. */
  readonly timeoutMs?: number | undefined;
  /** Between TERM and KILL. */
  readonly graceMs?: number | undefined;
  /** How much of each output is kept, and which part of it. */
  readonly maxOutputBytes?: number | undefined;
  readonly keep?: "head" | "tail" | "head_tail" | undefined;
  /** Throw CommandExitError when the command does not exit with 0. */
  readonly check?: boolean | undefined;
}

export type EndReason = "exited" | "signalled" | "timed_out" | "cancelled";

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: Uint8Array;
  readonly stderrBytes: Uint8Array;
  /** What the command printed in all. */
  readonly stdoutTotalBytes: number;
  readonly stderrTotalBytes: number;
  /** Whether a part of it was left out. */
  readonly stdoutTruncated: boolean;
  readonly stderrTruncated: boolean;
  /** Null when it ended by a signal, or had not ended when its time was up. */
  readonly exitCode: number | null;
  /** For example SIGKILL. */
  readonly signal: string | null;
  readonly reason: EndReason;
  readonly durationMs: number;
  /** Null where the machine cannot tell. */
  readonly cpuMs: number | null;
  readonly peakMemoryBytes: number | null;
  /** Variables that the machine does not let callers set, and did not set. */
  readonly envRemoved: readonly string[];
}

/** Thrown by `run` with `check: true`. */
export class CommandExitError extends Error {
  override readonly name = "CommandExitError";
  constructor(
    readonly command: string | readonly string[],
    readonly result: RunResult,
  ) {
    const how = result.signal ?? (result.exitCode === null ? result.reason : `exit code ${result.exitCode}`);
    const said = result.stderr.trim().split("\n").at(-1) ?? "";
    super(
      `${typeof command === "string" ? command : command.join(" ")} ended with ${how}${said === "" ? "" : `: ${said}`}`,
    );
  }
}

export interface Commands {
  /** Runs a command to its end. A text is a shell line; a list is run without a shell. */
  run(command: string | readonly string[], options?: RunOptions): Promise<RunResult>;
}

const KEEPS = { head: OutputKeep.HEAD, tail: OutputKeep.TAIL, head_tail: OutputKeep.HEAD_TAIL } as const;

const schema = z.strictObject({
  ...callFields,
  cwd: z.string().default(""),
  env: z.record(z.string(), z.string()).default({}),
  stdin: bytes.default(new Uint8Array()),
  timeoutMs: int64(1, LIMITS.runTimeoutMs.max).optional(),
  graceMs: int64(0, LIMITS.graceMs.max).optional(),
  maxOutputBytes: int64(0, LIMITS.runOutputBytes.max).optional(),
  keep: z.enum(["head", "tail", "head_tail"]).default("head"),
  check: z.boolean().default(false),
});

const commandSchema = z.union(
  [z.string().min(1, "the command is empty"), z.array(z.string()).min(1, "the command is empty")],
  "the command is neither a text nor a list of texts",
);

const REASONS: Readonly<Record<ProcEnd_Reason, EndReason | undefined>> = {
  [ProcEnd_Reason.EXITED]: "exited",
  [ProcEnd_Reason.SIGNALLED]: "signalled",
  [ProcEnd_Reason.TIMED_OUT]: "timed_out",
  [ProcEnd_Reason.CANCELLED]: "cancelled",
  [ProcEnd_Reason.REASON_UNSPECIFIED]: undefined,
  [ProcEnd_Reason.UNRECOGNIZED]: undefined,
};

/** An answer may take this much longer than the command's own time limit. */
const ANSWER_MARGIN_MS = 5_000;

const NOTHING: Output = { data: new Uint8Array(), totalBytes: 0n, truncated: false, headBytes: 0n };

const toResult = ({ stdout = NOTHING, stderr = NOTHING, end, envRemoved }: ProcRunResult): RunResult => {
  const reason = end === undefined ? undefined : REASONS[end.reason];
  if (end === undefined || reason === undefined)
    throw new FarhandError("protocol", "the answer does not say how the command ended", { ran: "yes" });
  const decoder = new TextDecoder();
  return {
    stdout: decoder.decode(stdout.data),
    stderr: decoder.decode(stderr.data),
    stdoutBytes: stdout.data,
    stderrBytes: stderr.data,
    stdoutTotalBytes: Number(stdout.totalBytes),
    stderrTotalBytes: Number(stderr.totalBytes),
    stdoutTruncated: stdout.truncated,
    stderrTruncated: stderr.truncated,
    exitCode: end.exitCode ?? null,
    signal: end.signal === "" ? null : end.signal,
    reason,
    durationMs: end.durationMs,
    cpuMs: end.cpuMs ?? null,
    peakMemoryBytes: end.peakMemoryBytes === undefined ? null : Number(end.peakMemoryBytes),
    envRemoved,
  };
};

export const createCommands = (call: MachineCall): Commands => ({
  async run(given, options = {}) {
    const command = readOptions(commandSchema, given);
    const { keep, check, signal, requestId, timeoutMs, ...fields } = readOptions(schema, options);
    const [argv, shell] = typeof command === "string" ? [[], command] : [command, undefined];
    const answer = await call(
      {
        $case: "procRun",
        value: {
          argv,
          shell,
          ...fields,
          timeoutMs,
          graceMs: fields.graceMs,
          maxOutputBytes: fields.maxOutputBytes,
          keep: KEEPS[keep],
        },
      },
      { signal, requestId, timeoutMs: Number(timeoutMs ?? LIMITS.runTimeoutMs.default) + ANSWER_MARGIN_MS },
    );
    const result = toResult(answer);
    if (check && result.exitCode !== 0) throw new CommandExitError(command, result);
    return result;
  },
});
