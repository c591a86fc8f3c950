import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { createTestFarhand } from "../../../control/testing/index.js";

const start = (options = {}) => {
  const { farhand, machine } = createTestFarhand(options);
  const played = machine("box");
  return { played, files: farhand.machine("box").files };
};

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

test("a seeded file is read through the client", async () => {
  const { played, files } = start();
  played.files.set("/etc/hostname", "box\n", { mode: 0o600 });
  expect(await files.read("/etc/hostname")).toBe("box\n");
  expect(await files.stat("/etc/hostname", { digest: true })).toMatchObject({
    name: "hostname",
    kind: "file",
    size: 4,
    mode: 0o600,
    sha256: sha256("box\n"),
  });
});

test("what the client writes is there for the test to look at", async () => {
  const { played, files } = start();
  const written = await files.write("notes.txt", "one");
  expect(written).toEqual({ path: "/home/test/notes.txt", size: 3, sha256: sha256("one"), created: true });
  expect(played.files.get("notes.txt")).toBe("one");
  await files.write("~/notes.txt", " two", { append: true });
  expect(played.files.getBytes("/home/test/notes.txt")).toEqual(new TextEncoder().encode("one two"));
  expect(played.files.paths()).toEqual(["/home/test/notes.txt"]);
});

test("a range is read by position", async () => {
  const { played, files } = start();
  played.files.set("digits", "0123456789");
  expect(await files.read("digits", { offset: 3, length: 4 })).toBe("3456");
  expect(await files.read("digits", { offset: 8 })).toBe("89");
});

test("a file larger than a message is read in parts", async () => {
  const { played, files } = start({ maxPayloadBytes: 4096 });
  const text = "0123456789".repeat(1_000);
  played.files.set("large", text);
  expect(await files.read("large")).toBe(text);
  expect(played.requests.length).toBe(4);
});

test("a write larger than a message is refused before it is sent", async () => {
  const { played, files } = start({ maxPayloadBytes: 4096 });
  await expect(files.write("large", "x".repeat(5_000))).rejects.toMatchObject({
    code: "too_large",
    detail: { limit: "4096" },
  });
  expect(played.requests).toEqual([]);
});

test("ifMatch guards a change against another one in between", async () => {
  const { played, files } = start();
  const { sha256: first } = await files.write("config", "a");
  played.files.set("config", "b");
  await expect(files.write("config", "c", { ifMatch: first ?? "" })).rejects.toMatchObject({
    code: "conflict",
    detail: { present: sha256("b") },
  });
  expect(played.files.get("config")).toBe("b");
});

test("a directory is listed page by page, in order of name", async () => {
  const { played, files } = start();
  for (const name of ["c", "a", "e", "b", "d"]) played.files.set(`list/${name}`, "");
  const page = await files.list("list", { limit: 2 });
  expect(page.entries.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(page.next).toBe("b");
  const all = [];
  for await (const { name } of files.entries("list")) all.push(name);
  expect(all).toEqual(["a", "b", "c", "d", "e"]);
  const last = await files.list("list", { limit: 2, cursor: "d" });
  expect(last).toMatchObject({ entries: [{ name: "e" }], next: null });
});

test("a page ends where the message is full", async () => {
  const { played, files } = start({ maxPayloadBytes: 4096 });
  for (let at = 0; at < 100; at++) played.files.set(`list/${String(at).padStart(3, "0")}`, "");
  const page = await files.list("list");
  expect(page.entries.length).toBeLessThan(100);
  expect(page.next).toBe(page.entries.at(-1)?.name);
  const all = [];
  for await (const { name } of files.entries("list")) all.push(name);
  expect(all.length).toBe(100);
});

test("a test can take files away and look for what is not there", async () => {
  const { played, files } = start();
  played.files.set("a/b", "x");
  played.files.remove("a");
  expect(played.files.get("a/b")).toBeUndefined();
  expect(await files.exists("a/b")).toBe(false);
});

test("bytes that a test seeded do not change with its own array", async () => {
  const { played, files } = start();
  const bytes = new Uint8Array([1, 2, 3]);
  played.files.set("bytes", bytes);
  bytes.fill(0);
  expect([...(await files.read("bytes", { format: "bytes" }))]).toEqual([1, 2, 3]);
});
