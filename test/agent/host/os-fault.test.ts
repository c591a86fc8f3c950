import { userInfo } from "node:os";
import { expect, test } from "vitest";
import { errnoOf, osFault } from "../../../agent/host/os-fault.js";
import { FarhandError } from "../../../proto/farhand-error.js";

const systemError = (code: string): Error => Object.assign(new Error(`${code}: it did not work`), { code });

test.each([
  ["ENOENT", "not_found"],
  ["ENOTDIR", "invalid"],
  ["EISDIR", "invalid"],
  ["EACCES", "denied"],
  ["EPERM", "denied"],
  ["EEXIST", "conflict"],
  ["ENOTEMPTY", "conflict"],
  ["ENAMETOOLONG", "invalid"],
  ["ELOOP", "invalid"],
  ["EMFILE", "busy"],
  ["ENFILE", "busy"],
  ["EAGAIN", "busy"],
  ["ENOMEM", "busy"],
  ["E2BIG", "too_large"],
  ["ENOSPC", "os"],
  ["EIO", "os"],
  ["EROFS", "os"],
])("%s means %s, with the errno and the subject named", (errno, code) => {
  const cause = systemError(errno);
  const fault = osFault(cause, { subject: "/x/y", detail: { path: "/x/y" } });
  expect(fault).toMatchObject({ code, detail: { errno, path: "/x/y" }, cause });
  expect(fault.message).toMatch(/^\/x\/y\b.{8,}/);
});

test.each(["EACCES", "EPERM"])("%s names the user who was refused", (errno) => {
  expect(osFault(systemError(errno), { subject: "/x" }).message).toContain(userInfo().username);
});

test("an errno without a row keeps what the system said", () => {
  expect(osFault(systemError("ENOSPC"), { subject: "/x" }).message).toBe("/x: ENOSPC: it did not work");
});

test("whether it ran is what the caller knows, else what the table says", () => {
  expect(osFault(systemError("EIO"), { subject: "/x" }).ran).toBe("yes");
  expect(osFault(systemError("EIO"), { subject: "/x", ran: "no" }).ran).toBe("no");
  expect(osFault(systemError("EACCES"), { subject: "/x", ran: "maybe" }).ran).toBe("maybe");
});

test("an error of ours stays what it is, and one that no system call made is a defect", () => {
  const ours = new FarhandError("conflict", "x");
  expect(osFault(ours, { subject: "/x" })).toBe(ours);
  expect(osFault(new TypeError("broken"), { subject: "/x" })).toMatchObject({
    code: "internal",
    ran: "maybe",
  });
  expect(errnoOf(new TypeError("broken"))).toBeUndefined();
  expect(errnoOf("ENOENT")).toBeUndefined();
});
