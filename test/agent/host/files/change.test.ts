import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createFiles } from "../../../../agent/host/files/files.js";
import { faultOf } from "../../../support/fails.js";
import { temporaryDirectory } from "../../../support/temporary.js";
import { asPlainUser } from "../unprivileged.js";

const setUp = () => {
  const root = temporaryDirectory();
  const at = (path: string): string => join(root, path);
  mkdirSync(at("full/deep"), { recursive: true });
  mkdirSync(at("empty"));
  writeFileSync(at("full/deep/file"), "deep");
  writeFileSync(at("file"), "file");
  symlinkSync("file", at("link"));
  return { root, at, files: createFiles({ root }) };
};

const PLAIN = { parents: false, mode: undefined };

describe("making a directory", () => {
  test("makes one, and with parents those above", async () => {
    const { at, files } = setUp();
    expect(await files.makeDirectory("new", PLAIN)).toBe(true);
    expect(await files.makeDirectory("a/b/c", { parents: true, mode: undefined })).toBe(true);
    expect(statSync(at("new")).isDirectory() && statSync(at("a/b/c")).isDirectory()).toBe(true);
  });

  test("that exists is a conflict, and with parents all right", async () => {
    const { files } = setUp();
    expect(await faultOf(files.makeDirectory("empty", PLAIN))).toMatchObject({ code: "conflict", ran: "no" });
    expect(await files.makeDirectory("empty", { parents: true, mode: undefined })).toBe(false);
  });

  test.each([false, true])("where a file is, is a conflict (parents: %s)", async (parents) => {
    const { files } = setUp();
    expect(await faultOf(files.makeDirectory("file", { parents, mode: undefined }))).toMatchObject({
      code: "conflict",
      detail: { errno: "EEXIST" },
    });
  });

  test("without its parent, or below a file, says so", async () => {
    const { files } = setUp();
    expect(await faultOf(files.makeDirectory("a/b", PLAIN))).toMatchObject({ code: "not_found" });
    expect(await faultOf(files.makeDirectory("file/b", PLAIN))).toMatchObject({ code: "invalid" });
  });

  test("has the mode asked for, whatever the umask", async () => {
    const { at, files } = setUp();
    await files.makeDirectory("shared", { parents: false, mode: 0o777 });
    expect(statSync(at("shared")).mode & 0o777).toBe(0o777);
    await files.makeDirectory("one/two", { parents: true, mode: 0o775 });
    expect(statSync(at("one/two")).mode & 0o777).toBe(0o775);
  });

  test("where the system takes no new entries ends in an error", async () => {
    const { files } = setUp();
    const fault = await faultOf(files.makeDirectory("/proc/a/b", { parents: true, mode: undefined }));
    expect(fault).toMatchObject({ code: "not_found", ran: "no" });
  });

  test("that exists keeps its mode", async () => {
    const { at, files } = setUp();
    chmodSync(at("empty"), 0o750);
    await files.makeDirectory("empty", { parents: true, mode: 0o777 });
    expect(statSync(at("empty")).mode & 0o777).toBe(0o750);
  });
});

describe("moving", () => {
  test("takes a file or a directory to another name", async () => {
    const { at, files } = setUp();
    await files.move("file", "empty/moved", { overwrite: false });
    await files.move("full", "renamed", { overwrite: false });
    expect(readFileSync(at("empty/moved"), "utf8")).toBe("file");
    expect(readFileSync(at("renamed/deep/file"), "utf8")).toBe("deep");
    expect(existsSync(at("file")) || existsSync(at("full"))).toBe(false);
  });

  test("takes a link itself, not what it points to", async () => {
    const { at, files } = setUp();
    await files.move("link", "other", { overwrite: false });
    expect(lstatSync(at("other")).isSymbolicLink()).toBe(true);
    expect(existsSync(at("file"))).toBe(true);
  });

  test("onto something is a conflict unless overwriting is asked for", async () => {
    const { at, files } = setUp();
    writeFileSync(at("old"), "old");
    const fault = await faultOf(files.move("file", "old", { overwrite: false }));
    expect(fault).toMatchObject({ code: "conflict", ran: "no", detail: { path: at("old") } });
    expect(readFileSync(at("old"), "utf8")).toBe("old");
    await files.move("file", "old", { overwrite: true });
    expect(readFileSync(at("old"), "utf8")).toBe("file");
  });

  test("onto a broken link is a conflict too", async () => {
    const { at, files } = setUp();
    symlinkSync("nowhere", at("broken"));
    expect(await faultOf(files.move("file", "broken", { overwrite: false }))).toMatchObject({
      code: "conflict",
    });
  });

  test.each([
    { what: "a missing source", from: "missing", to: "x", code: "not_found", blames: "missing" },
    {
      what: "a missing directory to go to",
      from: "file",
      to: "nowhere/x",
      code: "not_found",
      blames: "nowhere/x",
    },
    {
      what: "a file on the way to the target",
      from: "file",
      to: "link/x",
      code: "invalid",
      blames: "link/x",
    },
    { what: "a file on the way to the source", from: "file/x", to: "y", code: "invalid", blames: "file/x" },
    { what: "a file onto a directory", from: "file", to: "empty", code: "invalid", blames: "empty" },
    { what: "a directory onto a full one", from: "empty", to: "full", code: "conflict", blames: "full" },
    { what: "a directory onto a file", from: "empty", to: "file", code: "invalid", blames: "file" },
  ])("with $what is $code, did nothing and blames $blames", async ({ from, to, code, blames }) => {
    const { root, at, files } = setUp();
    const before = readdirSync(root, { recursive: true });
    const fault = await faultOf(files.move(from, to, { overwrite: true }));
    expect(fault).toMatchObject({ code, ran: "no", detail: { from: at(from), to: at(to) } });
    expect(fault.message.startsWith(`${at(blames)} `)).toBe(true);
    expect(readdirSync(root, { recursive: true })).toEqual(before);
  });

  test("below a file without overwriting blames the target too", async () => {
    const { at, files } = setUp();
    const fault = await faultOf(files.move("empty", "file/x", { overwrite: false }));
    expect(fault).toMatchObject({ code: "invalid", ran: "no" });
    expect(fault.message.startsWith(`${at("file/x")} `)).toBe(true);
  });

  test("a directory into itself fails and did nothing", async () => {
    const { at, files } = setUp();
    expect(await faultOf(files.move("full", "full/deep/x", { overwrite: false }))).toMatchObject({
      code: "os",
      ran: "no",
    });
    expect(existsSync(at("full/deep/file"))).toBe(true);
  });

  test("to another file system did nothing and says what to do", async () => {
    const { at, files } = setUp();
    const fault = await faultOf(
      files.move("file", `/dev/shm/farhand-test-${process.pid}`, { overwrite: false }),
    );
    expect(fault).toMatchObject({ code: "os", ran: "no", detail: { errno: "EXDEV" } });
    expect(fault.advice).toContain("copy");
    expect(existsSync(at("file"))).toBe(true);
  });
});

describe("removing", () => {
  const ONE = { recursive: false, missingOk: false };

  test("takes away a file, an empty directory, or a link without what it points to", async () => {
    const { at, files } = setUp();
    for (const path of ["link", "empty"]) expect(await files.remove(path, ONE)).toBe(true);
    expect(existsSync(at("file"))).toBe(true);
    expect(await files.remove("file", ONE)).toBe(true);
    expect(readdirSync(at("."))).toEqual(["full"]);
  });

  test("of a full directory is a conflict unless all of it is asked for", async () => {
    const { at, files } = setUp();
    expect(await faultOf(files.remove("full", ONE))).toMatchObject({ code: "conflict", ran: "no" });
    expect(await files.remove("full", { recursive: true, missingOk: false })).toBe(true);
    expect(existsSync(at("full"))).toBe(false);
  });

  test("of a tree does not follow links out of it", async () => {
    const { at, files } = setUp();
    symlinkSync(at("empty"), at("full/out"));
    writeFileSync(at("empty/kept"), "");
    await files.remove("full", { recursive: true, missingOk: false });
    expect(existsSync(at("empty/kept"))).toBe(true);
  });

  test("of what is missing is not_found, or false where that is all right", async () => {
    const { files } = setUp();
    expect(await faultOf(files.remove("missing", ONE))).toMatchObject({ code: "not_found", ran: "no" });
    expect(await files.remove("missing", { recursive: false, missingOk: true })).toBe(false);
    expect(await files.remove("missing", { recursive: true, missingOk: true })).toBe(false);
  });

  test("of a tree that stops in the middle may have removed something, and says so", async () => {
    const { root, at, files } = setUp();
    // The plain user may empty `mixed` but not `mixed/z`.
    mkdirSync(at("mixed/z"), { recursive: true });
    for (const name of ["a", "b", "z/kept"]) writeFileSync(join(at("mixed"), name), "");
    chmodSync(root, 0o755);
    chmodSync(at("mixed"), 0o777);
    chmodSync(at("mixed/z"), 0o555);
    const remove = () => faultOf(files.remove("mixed", { recursive: true, missingOk: false }));
    const fault = await asPlainUser(remove);
    expect(fault).toMatchObject({ code: "denied", ran: "maybe", detail: { errno: "EACCES" } });
    expect(existsSync(at("mixed/z/kept"))).toBe(true);
    chmodSync(at("mixed/z"), 0o755);
  });
});

describe("changing the mode", () => {
  test("sets the bits and tells what is there now", async () => {
    const { at, files } = setUp();
    expect(await files.changeMode("file", 0o4711)).toMatchObject({
      path: at("file"),
      kind: "file",
      mode: 0o4711,
    });
    expect(statSync(at("file")).mode & 0o7777).toBe(0o4711);
  });

  test("through a link changes what it points to, and tells of that", async () => {
    const { at, files } = setUp();
    expect(await files.changeMode("link", 0o600)).toMatchObject({ kind: "file", mode: 0o600 });
    expect(statSync(at("file")).mode & 0o777).toBe(0o600);
  });

  test("of what is missing or another user's is an error", async () => {
    const { root, at, files } = setUp();
    expect(await faultOf(files.changeMode("missing", 0o600))).toMatchObject({ code: "not_found", ran: "no" });
    chmodSync(root, 0o755);
    const foreign = process.getuid?.() === 0 ? at("file") : "/etc/passwd";
    if (foreign === at("file")) chownSync(foreign, 0, 0);
    const fault = await asPlainUser(() => faultOf(files.changeMode(foreign, 0o777)));
    expect(fault).toMatchObject({ code: "denied", ran: "no", detail: { errno: "EPERM" } });
  });
});
