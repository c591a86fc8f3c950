import * as z from "zod";
import { LIMITS } from "../../proto/limits.js";
import { OutputKeep, type Output, ProcEnd_Reason } from "../../proto/gen/process.js";
import type { Capture, Captured, Keep } from "../host/processes/capture.js";
import type { RunEnd } from "../host/processes/run.js";
import { count, type Op, readArgs, text } from "./op.js";

const bytesOf = (texts: Iterable<string>): number => {
  let bytes = 0;
  for (const one of texts) bytes += Buffer.byteLength(one) + 1;
  return bytes;
};

const schema = z
  .object({
    argv: z
      .array(text)
      .refine((argv) => bytesOf(argv) <= LIMITS.argvBytes, `is longer than ${LIMITS.argvBytes} bytes`),
    shell: text.optional(),
    cwd: text,
    env: z
      .record(text.regex(/^[^=]+$/, "is not a name for a variable"), text)
      .refine(
        (env) => bytesOf(Object.entries(env).flat()) <= LIMITS.envBytes,
        `is larger than ${LIMITS.envBytes} bytes`,
      ),
    stdin: z.instanceof(Uint8Array),
    timeoutMs: count(1, LIMITS.runTimeoutMs.max).optional(),
    maxOutputBytes: count(0, LIMITS.runOutputBytes.max).optional(),
    keep: z.union(
      [z.literal(OutputKeep.HEAD), z.literal(OutputKeep.TAIL), z.literal(OutputKeep.HEAD_TAIL)],
      "is not a way to keep output",
    ),
    graceMs: count(0, LIMITS.graceMs.max).optional(),
  })
  .refine(
    ({ argv, shell }) => argv.length > 0 !== (shell !== undefined),
    "give either argv or shell, and one of them",
  );

const KEEPS: Readonly<Record<OutputKeep, Keep>> = {
  [OutputKeep.HEAD]: "head",
  [OutputKeep.TAIL]: "tail",
  [OutputKeep.HEAD_TAIL]: "head_tail",
  [OutputKeep.UNRECOGNIZED]: "head",
};

const REASONS: Readonly<Record<RunEnd["reason"], ProcEnd_Reason>> = {
  exited: ProcEnd_Reason.EXITED,
  signalled: ProcEnd_Reason.SIGNALLED,
  timed_out: ProcEnd_Reason.TIMED_OUT,
  cancelled: ProcEnd_Reason.CANCELLED,
};

const toOutput = ({ data, totalBytes, truncated, headBytes }: Captured): Output => ({
  data,
  totalBytes: BigInt(totalBytes),
  truncated,
  headBytes: BigInt(headBytes),
});

/** Gives each stream what it needs, and half of the room where both need more than that. */
const fit = (stdout: Capture, stderr: Capture, maxBytes: number): { stdout: Output; stderr: Output } => {
  const out = stdout.take();
  const err = stderr.take();
  if (out.data.length + err.data.length <= maxBytes) return { stdout: toOutput(out), stderr: toOutput(err) };
  const half = Math.floor(maxBytes / 2);
  const forOut = Math.max(half, maxBytes - err.data.length);
  const forErr = Math.max(maxBytes - half, maxBytes - out.data.length);
  return { stdout: toOutput(stdout.take(forOut)), stderr: toOutput(stderr.take(forErr)) };
};

export const procRun: Op<"procRun"> = {
  mutates: true,
  run: async (args, call, { processes }) => {
    const request = readArgs(schema, args);
    const [program, ...rest] = request.argv;
    const { stdout, stderr, end, envRemoved } = await processes.run({
      command: program === undefined ? { shell: request.shell ?? "" } : { argv: [program, ...rest] },
      cwd: request.cwd === "" ? "." : request.cwd,
      env: request.env,
      stdin: request.stdin.length > 0 ? request.stdin : undefined,
      timeoutMs: request.timeoutMs ?? LIMITS.runTimeoutMs.default,
      graceMs: request.graceMs ?? LIMITS.graceMs.default,
      maxOutputBytes: Math.min(request.maxOutputBytes ?? LIMITS.runOutputBytes.default, call.maxReplyBytes),
      keep: KEEPS[request.keep],
      signal: call.signal,
    });
    return {
      ...fit(stdout, stderr, call.maxReplyBytes),
      end: {
        reason: REASONS[end.reason],
        exitCode: end.exitCode,
        signal: end.signal,
        durationMs: end.durationMs,
        cpuMs: end.cpuMs,
        peakMemoryBytes: end.peakMemoryBytes === undefined ? undefined : BigInt(end.peakMemoryBytes),
      },
      envRemoved,
    };
  },
};
