import type { Call, Caller, RequestOp, ResponseResult, Role } from "../../../agent/call.js";
import { ProcRun } from "../../../proto/gen/process.js";

const command = (shell: string): RequestOp => ({ $case: "procRun", value: ProcRun.fromPartial({ shell }) });

export const callerOf = (name: string, role: Role = "operator"): Caller => ({
  name,
  role,
  publicKey: `key of ${name}`,
});

/** A call that changes something, with a deadline ten seconds after its issue at 1,000,000. */
export const callOf = ({ shell = "date", ...more }: Partial<Call> & { shell?: string } = {}): Call => ({
  requestId: "r-1",
  scope: "",
  epoch: 0n,
  deadlineMs: 1_010_000,
  issuedMs: 1_000_000,
  op: command(shell),
  mutates: true,
  caller: callerOf("alice"),
  signal: new AbortController().signal,
  maxReplyBytes: 1_000_000,
  ...more,
});

export const removed = (value: boolean): ResponseResult => ({ $case: "fsRemove", value: { removed: value } });

/** The end of a path of steps, which counts its runs and ends when it is told to. */
export const heldOp = () => {
  const ends: { resolve(result: ResponseResult): void; reject(error: Error): void }[] = [];
  const calls: Call[] = [];
  return {
    calls,
    run: (call: Call): Promise<ResponseResult> => {
      calls.push(call);
      return new Promise((resolve, reject) => void ends.push({ resolve, reject }));
    },
    finish: (result: ResponseResult): void => ends.shift()?.resolve(result),
    fail: (error: Error): void => ends.shift()?.reject(error),
  };
};
