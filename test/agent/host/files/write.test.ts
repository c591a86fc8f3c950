import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createFiles } from "../../../../agent/host/files/files.js";
import type { WriteRequest } from "../../../../agent/host/files/write.js";
import { faultOf } from "../../../support/fails.js";
import { temporaryDirectory } from "../../../support/temporary.js";
import { asPlainUser } from "../unprivileged.js";

const sha256 = (data: string): string => createHash("sha256").update(data).digest("hex");

const setFileSizeLimit = (bytes: number | "unlimited"): void => {
  execFileSync("prlimit", ["--pid", String(process.pid), `--fsize=${bytes}:`]);
};

/** Lets this process write no file beyond a size: the system then fails in the middle, as on a full disk. */
const withFileSizeLimit = async <T>(bytes: number, task: () => Promise<T>): Promise<T> => {
  const heed = (): void => undefined;
  process.on("SIGXFSZ", heed);
  setFileSizeLimit(bytes);
  try {
    return await task();
  } finally {
    setFileSizeLimit("unlimited");
    process.off("SIGXFSZ", heed);
  }
};

const setUp = () => {
  const root = temporaryDirectory();
  const files = createFiles({ root });
  const write = (path: string, text: string, more: Partial<WriteRequest> = {}) =>
    files.write({
      path,
      data: Buffer.from(text),
      ifMatch: "",
      ifNoneMatch: false,
      append: false,
      mode: undefined,
      createParents: false,
      ...more,
    });
  const at = (path: string): string => join(root, path);
  const textOf = (path: string): string => readFileSync(at(path), "utf8");
  return { root, write, at, textOf };
};

describe("writing a file", () => {
  test("makes a new one and tells its size, digest and path", async () => {
    const { write, at, textOf } = setUp();
    const written = await write("new", "hello");
    expect(written).toEqual({ path: at("new"), size: 5n, sha256: sha256("hello"), created: true });
    expect(textOf("new")).toBe("hello");
  });

  test("replaces an old one by another file, so that a reader has the old or the new one whole", async () => {
    const { write, at, textOf } = setUp();
    await write("file", "old");
    linkSync(at("file"), at("reader"));
    const written = await write("file", "new text");
    expect(written).toMatchObject({ created: false, size: 8n });
    expect(textOf("file")).toBe("new text");
    expect(textOf("reader")).toBe("old");
  });

  test("gives a new file the mode asked for, whatever the umask", async () => {
    const { write, at } = setUp();
    await write("open", "x", { mode: 0o666 });
    await write("script", "x", { mode: 0o4755 });
    expect(statSync(at("open")).mode & 0o7777).toBe(0o666);
    expect(statSync(at("script")).mode & 0o7777).toBe(0o4755);
    await write("appended", "x", { mode: 0o666, append: true });
    expect(statSync(at("appended")).mode & 0o7777).toBe(0o666);
  });

  test("keeps the mode of an old file, also where another is asked for", async () => {
    const { write, at } = setUp();
    await write("file", "old");
    chmodSync(at("file"), 0o4751);
    await write("file", "new", { mode: 0o600 });
    expect(statSync(at("file")).mode & 0o7777).toBe(0o4751);
    chmodSync(at("file"), 0o440);
    await write("file", "newer");
    expect(statSync(at("file")).mode & 0o7777).toBe(0o440);
  });

  test("keeps the owner of an old file, as far as the agent's user may", async () => {
    const { write, at } = setUp();
    const isRoot = process.getuid?.() === 0;
    const owner = { uid: isRoot ? 1_234 : process.getuid?.(), gid: isRoot ? 2_345 : process.getgid?.() };
    await write("file", "old");
    chownSync(at("file"), owner.uid ?? 0, owner.gid ?? 0);
    await write("file", "new");
    expect(statSync(at("file"))).toMatchObject(owner);
  });

  test("takes over a foreign file that its directory lets it replace", async () => {
    const { root, write, at, textOf } = setUp();
    writeFileSync(at("foreign"), "old");
    chmodSync(at("foreign"), 0o644);
    chmodSync(root, 0o777);
    await asPlainUser(() => write("foreign", "new"));
    expect(textOf("foreign")).toBe("new");
    expect(statSync(at("foreign")).mode & 0o7777).toBe(0o644);
  });

  test("goes through a link, which stays a link", async () => {
    const { write, at, textOf } = setUp();
    mkdirSync(at("elsewhere"));
    await write("elsewhere/target", "old");
    symlinkSync("elsewhere/target", at("link"));
    expect((await write("link", "new")).path).toBe(at("elsewhere/target"));
    expect(readlinkSync(at("link"))).toBe("elsewhere/target");
    expect(textOf("elsewhere/target")).toBe("new");
    await write("link", "!", { append: true });
    expect(textOf("elsewhere/target")).toBe("new!");
  });

  test("goes through a link to what does not exist yet", async () => {
    const { write, at, textOf } = setUp();
    mkdirSync(at("elsewhere"));
    symlinkSync("elsewhere/target", at("link"));
    symlinkSync("link", at("chain"));
    expect(await write("chain", "made")).toMatchObject({ path: at("elsewhere/target"), created: true });
    expect(lstatSync(at("link")).isSymbolicLink()).toBe(true);
    expect(textOf("elsewhere/target")).toBe("made");
  });

  test("through a link in a circle is invalid", async () => {
    const { write, at } = setUp();
    symlinkSync("b", at("a"));
    symlinkSync("a", at("b"));
    expect(await faultOf(write("a", "x"))).toMatchObject({
      code: "invalid",
      ran: "no",
      detail: { errno: "ELOOP" },
    });
  });

  test("makes missing parents when asked, and says what is missing when not", async () => {
    const { write, textOf } = setUp();
    expect(await faultOf(write("a/b/file", "x"))).toMatchObject({ code: "not_found", ran: "no" });
    await write("a/b/file", "x", { createParents: true });
    expect(textOf("a/b/file")).toBe("x");
    await write("a/b/file", "y", { createParents: true });
    expect(textOf("a/b/file")).toBe("y");
  });

  test.each([false, true])("refuses what is not a regular file (append: %s)", async (append) => {
    const { write, at } = setUp();
    mkdirSync(at("directory"));
    expect(await faultOf(write("directory", "x", { append }))).toMatchObject({
      code: "invalid",
      detail: { kind: "directory" },
    });
    expect(await faultOf(write("/dev/null", "x", { append }))).toMatchObject({
      code: "invalid",
      detail: { kind: "device" },
    });
  });

  test("below a file is invalid", async () => {
    const { write } = setUp();
    await write("file", "x");
    expect(await faultOf(write("file/below", "x"))).toMatchObject({ code: "invalid", ran: "no" });
    const withParents = faultOf(write("file/below/file", "x", { createParents: true }));
    expect(await withParents).toMatchObject({ code: "invalid", ran: "no" });
  });
});

describe("conditions", () => {
  test("ifMatch writes over the contents it names, in either case, and over no other", async () => {
    const { write, textOf } = setUp();
    await write("file", "one");
    await write("file", "two", { ifMatch: sha256("one") });
    const fault = await faultOf(write("file", "three", { ifMatch: sha256("one") }));
    expect(fault).toMatchObject({ code: "conflict", ran: "no", detail: { present: sha256("two") } });
    expect(textOf("file")).toBe("two");
    await write("file", "four", { ifMatch: sha256("two").toUpperCase() });
    expect(textOf("file")).toBe("four");
  });

  test("ifMatch on a file that is not there is a conflict and makes none", async () => {
    const { write, at } = setUp();
    expect(await faultOf(write("file", "x", { ifMatch: sha256("") }))).toMatchObject({
      code: "conflict",
      ran: "no",
    });
    expect(existsSync(at("file"))).toBe(false);
  });

  test("ifNoneMatch makes a file once", async () => {
    const { write, textOf } = setUp();
    await write("file", "first", { ifNoneMatch: true });
    const fault = await faultOf(write("file", "second", { ifNoneMatch: true }));
    expect(fault).toMatchObject({ code: "conflict", ran: "no", detail: { errno: "EEXIST" } });
    expect(textOf("file")).toBe("first");
  });

  test("they hold for an append too", async () => {
    const { write, textOf } = setUp();
    await write("file", "a", { append: true, ifNoneMatch: true });
    await write("file", "b", { append: true, ifMatch: sha256("a") });
    expect(await faultOf(write("file", "c", { append: true, ifMatch: sha256("a") }))).toMatchObject({
      code: "conflict",
    });
    expect(textOf("file")).toBe("ab");
  });
});

describe("appending", () => {
  test("adds to the end of the same file, and makes it when there is none", async () => {
    const { write, at, textOf } = setUp();
    expect(await write("log", "one\n", { append: true })).toEqual({
      path: at("log"),
      size: 4n,
      sha256: "",
      created: true,
    });
    linkSync(at("log"), at("same"));
    expect(await write("log", "two\n", { append: true })).toMatchObject({ size: 8n, created: false });
    expect(textOf("same")).toBe("one\ntwo\n");
  });
});

describe("a write that fails", () => {
  test("leaves the old file and no temporary one", async () => {
    const { root, write, at, textOf } = setUp();
    await write("file", "old");
    mkdirSync(at("taken"));
    chmodSync(root, 0o755);
    expect(await asPlainUser(() => faultOf(write("file", "new")))).toMatchObject({
      code: "denied",
      ran: "no",
    });
    expect(await faultOf(write("taken", "new"))).toMatchObject({ code: "invalid" });
    expect(textOf("file")).toBe("old");
    expect(readdirSync(root).toSorted()).toEqual(["file", "taken"]);
  });

  test("in the middle of its bytes leaves the old file and no temporary one", async () => {
    const { root, write, textOf } = setUp();
    await write("file", "old");
    const fault = await withFileSizeLimit(4_096, () => faultOf(write("file", "x".repeat(100_000))));
    expect(fault).toMatchObject({ code: "os", ran: "no", detail: { errno: "EFBIG" } });
    expect(textOf("file")).toBe("old");
    expect(readdirSync(root)).toEqual(["file"]);
  });

  test("takes back what an append had written of it", async () => {
    const { write, textOf } = setUp();
    await write("log", "old\n");
    const fault = await withFileSizeLimit(4_096, () =>
      faultOf(write("log", "x".repeat(100_000), { append: true })),
    );
    expect(fault).toMatchObject({ code: "os", ran: "no", detail: { errno: "EFBIG" } });
    expect(textOf("log")).toBe("old\n");
  });
});

describe("writers at the same time", () => {
  test("only one of many with the same ifMatch gets through", async () => {
    const { root, write, textOf } = setUp();
    await write("file", "start");
    const writers = Array.from({ length: 20 }, (_, n) =>
      write("file", `writer ${n}`, { ifMatch: sha256("start") }),
    );
    const outcomes = await Promise.allSettled(writers);
    const winners = outcomes.flatMap(({ status }, n) => (status === "fulfilled" ? [n] : []));
    expect(winners).toHaveLength(1);
    expect(textOf("file")).toBe(`writer ${winners[0]}`);
    expect(readdirSync(root)).toEqual(["file"]);
  });

  test("only one of many makes the file, by whatever name they call it", async () => {
    const { write, at } = setUp();
    mkdirSync(at("real"));
    symlinkSync("real", at("alias"));
    const names = ["real/file", "alias/file", "./real/../real/file"];
    const writers = Array.from({ length: 30 }, (_, n) =>
      write(names[n % 3] ?? "", `${n}`, { ifNoneMatch: true }),
    );
    const outcomes = await Promise.allSettled(writers);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("all of many find the new directory that they make for themselves", async () => {
    const { write, at } = setUp();
    const writers = Array.from({ length: 20 }, (_, n) => write(`a/b/c/${n}`, "x", { createParents: true }));
    await Promise.all(writers);
    expect(readdirSync(at("a/b/c"))).toHaveLength(20);
  });

  test("none of many appends is lost or mixed with another", async () => {
    const { write, textOf } = setUp();
    const lines = Array.from({ length: 50 }, (_, n) => `${n}:${"x".repeat(1_000)}\n`);
    await Promise.all(lines.map((line) => write("log", line, { append: true })));
    expect(
      textOf("log")
        .split(/(?<=\n)/)
        .toSorted(),
    ).toEqual(lines.toSorted());
  });

  test("a failed one does not hold up the next", async () => {
    const { write, textOf } = setUp();
    const failed = faultOf(write("file", "x", { ifMatch: sha256("nothing") }));
    const next = write("file", "y");
    expect(await failed).toMatchObject({ code: "conflict" });
    await next;
    expect(textOf("file")).toBe("y");
  });
});
