import * as z from "zod";
import { FarhandError } from "../../proto/farhand-error.js";
import { LIMITS } from "../../proto/limits.js";
import type { ArgsOf, Call, Caller, OpName, ResultOf } from "../call.js";
import type { Files } from "../host/files/files.js";
import type { Processes } from "../host/processes/processes.js";

/** What ops may touch. */
export interface Host {
  readonly files: Files;
  readonly processes: Processes;
  readonly about: About;
  /** Ends a running request of this caller; false if there is none. */
  cancel(caller: Caller, requestId: string): boolean;
}

/** What describe tells that does not change while the agent runs. */
export interface About {
  readonly workspace: string;
  readonly machine: string;
  readonly startedMs: number;
}

export interface Op<K extends OpName> {
  /** Whether it can change anything: then it is fenced, journaled and run at most once. */
  readonly mutates: boolean;
  /** Whether it is answered on the workspace's scatter subject too. */
  readonly scatter?: boolean;
  /** Whether it is answered there to anybody: it tells no more than that the machine is there. */
  readonly anonymous?: boolean;
  readonly run: (args: ArgsOf<K>, call: Call, host: Host) => Promise<ResultOf<K>>;
}

/** Reads an op's arguments strictly, and names every problem at once. */
export const readArgs = <T>(schema: z.ZodType<T>, args: unknown): T => {
  const read = schema.safeParse(args);
  if (read.success) return read.data;
  const problems = read.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join(".")}: ${message}`,
  );
  throw new FarhandError("invalid", problems.join("; "), {
    detail: Object.fromEntries(problems.map((problem, at) => [`problem${at + 1}`, problem])),
  });
};

const hasNoNul = (text: string): boolean => !text.includes("\0");
const NUL = "holds a NUL character";

export const text = z.string().refine(hasNoNul, NUL);

export const path = z
  .string()
  .min(1, "is empty")
  .refine(hasNoNul, NUL)
  .refine(
    (value) => Buffer.byteLength(value) <= LIMITS.pathBytes,
    `is longer than ${LIMITS.pathBytes} bytes`,
  );

export const mode = z.int().min(0, "is not between 0 and 0o7777").max(0o7777, "is not between 0 and 0o7777");

/** An int64 of the wire within a range, as a number. */
export const count = (min: number, max: number) =>
  z
    .bigint()
    .refine((value) => value >= BigInt(min) && value <= BigInt(max), `is not between ${min} and ${max}`)
    .transform(Number);
