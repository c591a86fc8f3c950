import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createFiles } from "../../../../agent/host/files/files.js";
import { atEnd } from "../../../support/at-end.js";
import { faultOf } from "../../../support/fails.js";
import { temporaryDirectory } from "../../../support/temporary.js";
import { asPlainUser } from "../unprivileged.js";

const sha256 = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");
const BYTES = Buffer.from(Array.from({ length: 1_000 }, (_, at) => (at * 7) % 256));

const setUp = () => {
  const root = temporaryDirectory();
  writeFileSync(join(root, "bytes"), BYTES, { mode: 0o640 });
  chmodSync(join(root, "bytes"), 0o640);
  mkdirSync(join(root, "directory"));
  symlinkSync("bytes", join(root, "link"));
  symlinkSync("nowhere", join(root, "broken"));
  symlinkSync("circle", join(root, "circle"));
  execFileSync("mkfifo", [join(root, "fifo")]);
  return { root, files: createFiles({ root }) };
};

const listenOn = async (path: string): Promise<void> => {
  const server = createServer().listen(path);
  await once(server, "listening");
  atEnd(() => void server.close());
};

const ALL = { offset: 0n, length: 100_000 };

describe("stat", () => {
  test("tells what a file is", async () => {
    const { root, files } = setUp();
    utimesSync(join(root, "bytes"), 1_000, 1_234.5);
    const { info, sha256: digest } = await files.stat("bytes", { follow: true, digest: false });
    expect(info).toMatchObject({
      path: join(root, "bytes"),
      name: "bytes",
      kind: "file",
      size: 1_000n,
      modifiedMs: 1_234_500n,
      mode: 0o640,
      uid: process.getuid?.(),
      gid: process.getgid?.(),
      linkTarget: "",
    });
    expect(digest).toBe("");
  });

  test("tells every kind of thing from the others", async () => {
    const { root, files } = setUp();
    await listenOn(join(root, "socket"));
    const kindOf = async (path: string) =>
      (await files.stat(path, { follow: false, digest: false })).info.kind;
    expect(await kindOf("directory")).toBe("directory");
    expect(await kindOf("link")).toBe("symlink");
    expect(await kindOf("fifo")).toBe("fifo");
    expect(await kindOf("socket")).toBe("socket");
    expect(await kindOf("/dev/null")).toBe("device");
  });

  test("looks at a link or at what it points to, as asked", async () => {
    const { files } = setUp();
    const followed = await files.stat("link", { follow: true, digest: false });
    expect(followed.info).toMatchObject({ kind: "file", size: 1_000n, name: "link", linkTarget: "" });
    const itself = await files.stat("link", { follow: false, digest: false });
    expect(itself.info).toMatchObject({ kind: "symlink", linkTarget: "bytes" });
    const broken = await files.stat("broken", { follow: false, digest: false });
    expect(broken.info).toMatchObject({ kind: "symlink", linkTarget: "nowhere" });
  });

  test("gives the digest of the contents when asked", async () => {
    const { root, files } = setUp();
    const large = Buffer.alloc(300_000, "farhand");
    writeFileSync(join(root, "large"), large);
    expect((await files.stat("large", { follow: true, digest: true })).sha256).toBe(sha256(large));
    expect((await files.stat("link", { follow: true, digest: true })).sha256).toBe(sha256(BYTES));
  });

  test.each([
    ["missing", "not_found", "ENOENT"],
    ["broken", "not_found", "ENOENT"],
    ["bytes/below", "invalid", "ENOTDIR"],
    ["circle", "invalid", "ELOOP"],
    ["x".repeat(300), "invalid", "ENAMETOOLONG"],
  ])("of %s is %s", async (path, code, errno) => {
    const { files } = setUp();
    expect(await faultOf(files.stat(path, { follow: true, digest: false }))).toMatchObject({
      code,
      detail: { errno },
    });
  });
});

describe("read", () => {
  test.each([
    { offset: 0n, length: 1_000, from: 0, to: 1_000, eof: true },
    { offset: 0n, length: 5_000, from: 0, to: 1_000, eof: true },
    { offset: 0n, length: 999, from: 0, to: 999, eof: false },
    { offset: 400n, length: 100, from: 400, to: 500, eof: false },
    { offset: 999n, length: 1, from: 999, to: 1_000, eof: true },
    { offset: 999n, length: 100, from: 999, to: 1_000, eof: true },
    { offset: 1_000n, length: 100, from: 0, to: 0, eof: true },
    { offset: 2n ** 40n, length: 100, from: 0, to: 0, eof: true },
    { offset: 0n, length: 0, from: 0, to: 0, eof: false },
  ])("gives $length bytes from $offset, and whether that is the end: $eof", async (range) => {
    const { files } = setUp();
    const { data, eof, size } = await files.read("bytes", range);
    expect(data.equals(BYTES.subarray(range.from, range.to))).toBe(true);
    expect({ eof, size }).toEqual({ eof: range.eof, size: 1_000n });
  });

  test("gives an empty file as its end", async () => {
    const { root, files } = setUp();
    writeFileSync(join(root, "empty"), "");
    expect(await files.read("empty", ALL)).toMatchObject({ data: Buffer.alloc(0), eof: true, size: 0n });
  });

  test("gives a file of /proc whole, though its size is told as 0", async () => {
    const { files } = setUp();
    const { data, eof, size } = await files.read("/proc/version", ALL);
    expect(data.toString()).toBe(readFileSync("/proc/version", "utf8"));
    expect({ eof, size }).toEqual({ eof: true, size: 0n });
    const part = await files.read("/proc/version", { offset: 6n, length: 7 });
    expect(part.data.toString()).toBe("version");
    expect(part.eof).toBe(false);
  });

  test("follows a link", async () => {
    const { files } = setUp();
    expect((await files.read("link", ALL)).data.equals(BYTES)).toBe(true);
  });

  test.each([
    ["fifo", "fifo"],
    ["directory", "directory"],
    ["socket", "socket"],
    ["/dev/null", "device"],
  ])("refuses %s without waiting for it, and says what it is", async (path, kind) => {
    const { root, files } = setUp();
    await listenOn(join(root, "socket"));
    const fault = await faultOf(files.read(path, ALL));
    expect(fault).toMatchObject({ code: "invalid", ran: "no", detail: { kind } });
    expect(fault.message).toMatch(/not a regular file/);
  });

  test("of what is missing names the whole path", async () => {
    const { root, files } = setUp();
    const fault = await faultOf(files.read("missing", ALL));
    expect(fault).toMatchObject({
      code: "not_found",
      detail: { path: join(root, "missing"), errno: "ENOENT" },
    });
  });

  test("of what the agent's user may not read is denied", async () => {
    const { root, files } = setUp();
    chmodSync(root, 0o755);
    writeFileSync(join(root, "secret"), "x");
    chmodSync(join(root, "secret"), 0o000);
    const fault = await asPlainUser(() => faultOf(files.read("secret", ALL)));
    expect(fault).toMatchObject({ code: "denied", ran: "no", detail: { errno: "EACCES" } });
  });
});

describe("a path", () => {
  test("is taken from the root, from the home directory after ~, or as it stands", () => {
    const { root, files } = setUp();
    expect(files.at("a/../b")).toBe(join(root, "b"));
    expect(files.at("")).toBe(root);
    expect(files.at("/x/../y/")).toBe("/y");
    expect(files.at("~")).not.toContain("~");
    expect(files.at("~/x")).toBe(join(files.at("~"), "x"));
    expect(files.at("~x")).toBe(join(root, "~x"));
  });

  test("with a NUL or of more than 4096 bytes is refused", () => {
    const { files } = setUp();
    const invalid = expect.objectContaining({ code: "invalid" });
    expect(() => files.at("a\0b")).toThrow(invalid);
    expect(() => files.at("é".repeat(2_049))).toThrow(invalid);
    expect(files.at("é".repeat(2_048))).toContain("é");
  });
});
