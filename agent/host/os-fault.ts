import { userInfo } from "node:os";
import { FarhandError } from "../../proto/farhand-error.js";
import type { FaultCode, Ran } from "../../proto/faults.js";

/** What the operating system's errors mean to a caller; the rest is `os`, with the errno. */
const ERRNO: Readonly<Record<string, { code: FaultCode; says: string }>> = {
  ENOENT: { code: "not_found", says: "does not exist" },
  ENOTDIR: { code: "invalid", says: "has a part that is not a directory" },
  EISDIR: { code: "invalid", says: "is a directory" },
  EACCES: { code: "denied", says: "is not permitted to the agent's user by the operating system" },
  EPERM: { code: "denied", says: "is not permitted to the agent's user by the operating system" },
  EEXIST: { code: "conflict", says: "exists already" },
  ENOTEMPTY: { code: "conflict", says: "is a directory that is not empty" },
  ENAMETOOLONG: { code: "invalid", says: "is too long a name" },
  ELOOP: { code: "invalid", says: "has too many links, or links in a circle" },
  EMFILE: { code: "busy", says: "could not be opened: the agent has no file descriptors left" },
  ENFILE: { code: "busy", says: "could not be opened: the machine has no file descriptors left" },
  EAGAIN: { code: "busy", says: "could not be started: the machine has no processes or memory left" },
  ENOMEM: { code: "busy", says: "could not be started: the machine has no memory left" },
  E2BIG: { code: "too_large", says: "has too long a list of arguments or too large an environment" },
};

export const errnoOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

export interface FaultContext {
  /** What was touched, as the caller named it. */
  readonly subject: string;
  readonly detail?: Readonly<Record<string, string>>;
  /** Whether something may have changed before the error. */
  readonly ran?: Ran;
}

/** An error of a system call, told so that the caller knows what to do about it. */
export const osFault = (error: unknown, { subject, detail = {}, ran }: FaultContext): FarhandError => {
  if (error instanceof FarhandError) return error;
  const errno = errnoOf(error);
  if (errno === undefined) return FarhandError.from(error);
  const row = ERRNO[errno];
  const message =
    row === undefined
      ? `${subject}: ${error instanceof Error ? error.message : errno}`
      : `${subject} ${row.says}${row.code === "denied" ? ` (${userInfo().username})` : ""}`;
  return new FarhandError(row?.code ?? "os", message, { detail: { errno, ...detail }, ran, cause: error });
};
