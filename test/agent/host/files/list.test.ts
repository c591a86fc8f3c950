import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createFiles } from "../../../../agent/host/files/files.js";
import { faultOf } from "../../../support/fails.js";
import { temporaryDirectory } from "../../../support/temporary.js";

const setUp = (names: readonly string[]) => {
  const root = temporaryDirectory();
  for (const name of names) writeFileSync(join(root, name), name);
  return { root, files: createFiles({ root }) };
};

/** Every page of a directory, one after the other. */
const pagesOf = async (
  files: ReturnType<typeof createFiles>,
  path: string,
  limit: number,
): Promise<string[][]> => {
  const pages: string[][] = [];
  for (let cursor = ""; ; cursor = pages.at(-1)?.at(-1) ?? "") {
    const { entries, more } = await files.list({ path, cursor, limit });
    pages.push(entries.map(({ name }) => name));
    if (!more) return pages;
  }
};

const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `file-${String(n).padStart(5, "0")}`);

describe("a list", () => {
  test("is in order of name, each entry with what it is", async () => {
    const { root, files } = setUp(["b", "a", "C", ".hidden", "é"]);
    mkdirSync(join(root, "dir"));
    const { entries, more } = await files.list({ path: ".", cursor: "", limit: 100 });
    expect(entries.map(({ name }) => name)).toEqual([".hidden", "C", "a", "b", "dir", "é"]);
    expect(entries[4]).toMatchObject({ kind: "directory", path: join(root, "dir") });
    expect(entries[5]).toMatchObject({ kind: "file", size: 2n });
    expect(more).toBe(false);
  });

  test("of an empty directory is empty", async () => {
    const { files } = setUp([]);
    expect(await files.list({ path: ".", cursor: "", limit: 10 })).toEqual({ entries: [], more: false });
  });

  test("tells whether there is more, also when the page is just full", async () => {
    const { files } = setUp(numbered(10));
    expect((await files.list({ path: ".", cursor: "", limit: 10 })).more).toBe(false);
    expect((await files.list({ path: ".", cursor: "", limit: 9 })).more).toBe(true);
    expect((await files.list({ path: ".", cursor: "file-00008", limit: 1 })).more).toBe(false);
  });

  test.each([1, 2, 3, 7])("in pages of %i has every name once and in order", async (limit) => {
    const names = numbered(23);
    const { files } = setUp(names.toReversed());
    const pages = await pagesOf(files, ".", limit);
    expect(pages.flat()).toEqual(names);
    expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true);
  });

  test("of 5,000 entries comes in pages without a loss", async () => {
    const names = numbered(5_000);
    const { files } = setUp(names);
    const pages = await pagesOf(files, ".", 1_000);
    expect(pages.map((page) => page.length)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
    expect(pages.flat()).toEqual(names);
  });

  test("goes on after a cursor whose entry has gone", async () => {
    const { files } = setUp(["a", "c", "d"]);
    const { entries } = await files.list({ path: ".", cursor: "b", limit: 10 });
    expect(entries.map(({ name }) => name)).toEqual(["c", "d"]);
  });

  test("has a broken link as a link, with where it points", async () => {
    const { root, files } = setUp(["a"]);
    symlinkSync("nowhere", join(root, "broken"));
    const { entries } = await files.list({ path: ".", cursor: "", limit: 10 });
    expect(entries).toMatchObject([
      { name: "a" },
      { name: "broken", kind: "symlink", linkTarget: "nowhere" },
    ]);
  });

  test("has an entry that cannot be looked at with the reason, and all the others", async () => {
    const { root, files } = setUp(["a", "z"]);
    // The name is not UTF-8, so that it cannot be asked for by the name that the list shows.
    writeFileSync(Buffer.concat([Buffer.from(`${root}/m`), Buffer.from([0xff])]), "");
    const { entries } = await files.list({ path: ".", cursor: "", limit: 10 });
    expect(entries).toHaveLength(3);
    expect(entries).toMatchObject([
      { name: "a", kind: "file" },
      { name: "m\ufffd", problem: expect.stringContaining("does not exist") },
      { name: "z", kind: "file" },
    ]);
  });

  test("of what is missing or not a directory is an error", async () => {
    const { files } = setUp(["file"]);
    const list = (path: string) => faultOf(files.list({ path, cursor: "", limit: 10 }));
    expect(await list("missing")).toMatchObject({ code: "not_found", detail: { errno: "ENOENT" } });
    expect(await list("file")).toMatchObject({ code: "invalid", detail: { errno: "ENOTDIR" } });
  });
});
