import { OutputKeep, type Output } from "../../proto/gen/process.js";

/** Of an output that is kept at both ends, how much is from its beginning. */
const HEAD_SHARE = 0.3;

/** What is kept of an output that may measure `maxBytes`. */
export const keepOutput = (whole: Uint8Array, keep: OutputKeep, maxBytes: number): Output => {
  const totalBytes = BigInt(whole.length);
  if (whole.length <= maxBytes)
    return { data: whole, totalBytes, truncated: false, headBytes: BigInt(whole.length) };
  const shares = {
    [OutputKeep.HEAD]: maxBytes,
    [OutputKeep.TAIL]: 0,
    [OutputKeep.HEAD_TAIL]: Math.floor(maxBytes * HEAD_SHARE),
    [OutputKeep.UNRECOGNIZED]: maxBytes,
  };
  const head = shares[keep];
  const tail = maxBytes - head;
  return {
    data: Buffer.concat([whole.subarray(0, head), whole.subarray(whole.length - tail)]),
    totalBytes,
    truncated: true,
    headBytes: BigInt(head),
  };
};

export interface Printed {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

export interface Room {
  readonly keep: OutputKeep;
  /** For each output. */
  readonly maxBytes: number;
  /** For both together. */
  readonly maxReplyBytes: number;
}

/** Gives each output what it needs, and half of the reply where both need more than that. */
export const keepBoth = (
  { stdout, stderr }: Printed,
  { keep, maxBytes, maxReplyBytes }: Room,
): { stdout: Output; stderr: Output } => {
  const half = Math.floor(maxReplyBytes / 2);
  const [out, err] = [Math.min(stdout.length, maxBytes), Math.min(stderr.length, maxBytes)];
  return {
    stdout: keepOutput(stdout, keep, Math.min(maxBytes, Math.max(half, maxReplyBytes - err))),
    stderr: keepOutput(stderr, keep, Math.min(maxBytes, Math.max(maxReplyBytes - half, maxReplyBytes - out))),
  };
};
