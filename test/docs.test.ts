import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { z } from "zod";
import { FAULTS } from "../proto/faults.js";
import { renderFaults, withFaults } from "../scripts/faults-doc.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const pages = [
  "README.md",
  "CHANGELOG.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];

test.each(Object.keys(FAULTS))("docs/faults.md has the code %s", (code) => {
  expect(read("docs/faults.md")).toContain(`| \`${code}\` |`);
});

test("the table in docs/faults.md is the one of proto/faults.ts", () => {
  const text = read("docs/faults.md");
  expect(withFaults(text, FAULTS), "run npm run build && node scripts/faults-doc.mjs").toBe(text);
});

test("a fault that is not in the document is noticed", () => {
  const more = { ...FAULTS, melted: { ...FAULTS.os, title: "It has melted | away" } };
  expect(withFaults(read("docs/faults.md"), more)).not.toBe(read("docs/faults.md"));
  expect(renderFaults(more)).toContain("| `melted` | It has melted \\| away | yes |");
});

test("a document without the marks is refused", () => {
  expect(() => withFaults("# Faults\n", FAULTS)).toThrow("lost the marks");
});

const dependencies = (): string[] => {
  const names = z.record(z.string(), z.string()).default({});
  const manifest = z
    .object({ dependencies: names, optionalDependencies: names, devDependencies: names })
    .parse(JSON.parse(read("package.json")));
  return Object.values(manifest).flatMap(Object.keys);
};

test.each(dependencies())("docs/dependencies.md says why %s is there", (name) => {
  expect(read("docs/dependencies.md")).toMatch(new RegExp(`^\\| \`${name}\` +\\| \\S`, "m"));
});

test("docs/dependencies.md names no dependency that is gone", () => {
  const named = [...read("docs/dependencies.md").matchAll(/^\| `([^`]+)`/gm)].map(([, name = ""]) => name);
  expect(named.toSorted()).toEqual(dependencies().toSorted());
});

const FENCED = /^```[\s\S]*?^```/gm;
const LINK = /\]\(([^)\s]+)\)/g;

/** As the heading's link reads: lower case, words joined by dashes. */
const anchors = (text: string): string[] =>
  [...text.replaceAll(FENCED, "").matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

const brokenLinks = (page: string): string[] =>
  [...read(page).replaceAll(FENCED, "").matchAll(LINK)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : join(dirname(page), path);
      if (!existsSync(join(root, file)) || relative(root, join(root, file)).startsWith("..")) return true;
      return anchor !== undefined && !anchors(read(file)).includes(anchor);
    });

test.each(pages)("every link within the project in %s leads somewhere", (page) => {
  expect(brokenLinks(page)).toEqual([]);
});

/** The steps in the order in which agent.ts puts them together, by the names of their files' rules. */
test("docs/architecture.md draws the steps in their real order", () => {
  const list = /steps: \[([\s\S]*?)\n {4}\]/.exec(read("agent/agent.ts"))?.[1] ?? "";
  const real = [...list.matchAll(/^ {6}(\w+)/gm)].map(([, name]) => (name === "gate" ? "drain" : name));
  const drawn = [...read("docs/architecture.md").matchAll(/^ .* (\d) (\w+) {2,}\S/gm)].map(
    ([, , name]) => name,
  );
  expect(real.length).toBeGreaterThan(0);
  expect(drawn).toEqual(real);
});
