import * as z from "zod";
import { FarhandError } from "../proto/farhand-error.js";
import { LIMITS } from "../proto/limits.js";

/** Reads options strictly, and names every problem at once, before anything is sent. */
export const readOptions = <T>(schema: z.ZodType<T>, options: unknown): T => {
  const read = schema.safeParse(options);
  if (read.success) return read.data;
  const problems = read.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join(".")}: ${message}`,
  );
  throw new FarhandError("invalid", problems.join("; "), {
    detail: Object.fromEntries(problems.map((problem, at) => [`problem${at + 1}`, problem])),
  });
};

/** A whole number within a range, as the int64 of the wire. */
export const int64 = (min: number, max: number) =>
  z
    .number()
    .refine(
      (value) => Number.isSafeInteger(value) && value >= min && value <= max,
      `is not a whole number between ${min} and ${max}`,
    )
    .transform(BigInt);

export const path = z.string("is not a text").min(1, "is empty");

export const bytes = z.union(
  [z.string().transform((text) => new TextEncoder().encode(text)), z.instanceof(Uint8Array)],
  "is neither text nor bytes",
);

export const fileMode = z
  .int("is not a whole number")
  .min(0, "is not between 0 and 0o7777")
  .max(0o7777, "is not between 0 and 0o7777");

/** What every call takes. */
export const callFields = {
  signal: z.instanceof(AbortSignal, { message: "is not an AbortSignal" }).optional(),
  requestId: z
    .string()
    .min(1, "is empty")
    .max(LIMITS.requestIdChars, `is longer than ${LIMITS.requestIdChars} characters`)
    .optional(),
  timeoutMs: z
    .number()
    .refine(
      (value) => value >= 1 && value <= LIMITS.deadlineAheadMs,
      `is not between 1 and ${LIMITS.deadlineAheadMs}`,
    )
    .optional(),
};
