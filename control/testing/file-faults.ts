import { FarhandError } from "../../proto/farhand-error.js";
import type { FaultCode } from "../../proto/faults.js";

/** What an agent makes of the errors of a file system. */
const ERRNO = {
  ENOENT: { code: "not_found", says: "does not exist" },
  ENOTDIR: { code: "invalid", says: "has a part that is not a directory" },
  EISDIR: { code: "invalid", says: "is a directory" },
  EEXIST: { code: "conflict", says: "exists already" },
  ENOTEMPTY: { code: "conflict", says: "is a directory that is not empty" },
  ENAMETOOLONG: { code: "invalid", says: "is too long a name" },
  EINVAL: { code: "os", says: "cannot be moved into itself" },
  EBUSY: { code: "os", says: "is in use by the system" },
} as const satisfies Record<string, { code: FaultCode; says: string }>;

export type Errno = keyof typeof ERRNO;

/** Makes the fault of one operation, which knows what it is about. */
export type Fault = (errno: Errno) => FarhandError;

export const errnoFault = (
  errno: Errno,
  subject: string,
  detail: Readonly<Record<string, string>>,
): FarhandError => {
  const { code, says } = ERRNO[errno];
  return new FarhandError(code, `${subject} ${says}`, { ran: "no", detail: { errno, ...detail } });
};

export const faultAt =
  (path: string): Fault =>
  (errno) =>
    errnoFault(errno, path, { path });

export const notAFile = (path: string): FarhandError =>
  new FarhandError("invalid", `${path} is a directory, not a regular file`, {
    detail: { path, kind: "directory", errno: "EISDIR" },
  });
