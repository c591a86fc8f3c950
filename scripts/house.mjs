// Keeps the import rules of the house (docs/architecture.md).
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Which first match applies to a file, and what it may import of the project and of NATS. */
const RULES = [
  { files: /^proto\//, may: [/^proto\//] },
  { files: /^agent\/host\//, may: [/^agent\/host\//, /^proto\/(farhand-error|faults|limits)\.ts$/] },
  { files: /^agent\/ops\//, may: [/^agent\/ops\//, /^agent\/host\//, /^agent\/call\.ts$/, /^proto\//] },
  { files: /^agent\/steps\//, may: [/^agent\/(steps|store)\//, /^agent\/(call|running)\.ts$/, /^proto\//] },
  {
    files: /^agent\/store\//,
    may: [/^agent\/store\//, /^agent\/host\/processes\/identity\.ts$/, /^proto\//],
  },
  { files: /^agent\/wire\//, may: [/^agent\/(wire|identity)\//, /^proto\//], nats: /^@nats-io\// },
  { files: /^agent\/identity\//, may: [/^agent\/identity\//, /^proto\//] },
  { files: /^agent\/serve\.ts$/, may: [/^agent\/call\.ts$/, /^proto\//] },
  { files: /^agent\//, may: [/^agent\//, /^proto\//] },
  {
    files: /^control\/wire\//,
    may: [/^control\/wire\//, /^control\/rpc\.ts$/, /^proto\//],
    nats: /^@nats-io\//,
  },
  // Claims of operator and account are made in the library's own form; nothing there dials.
  { files: /^control\/authority\//, may: [/^control\//, /^proto\//], nats: /^@nats-io\/jwt$/ },
  { files: /^control\//, may: [/^control\//, /^proto\//] },
];

const IMPORT =
  /(?:import|export)\s+(?:type\s+)?(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']|import\(\s*["']([^"']+)["']\s*\)/g;

const sources = (directory) =>
  readdirSync(join(root, directory), { recursive: true })
    .map((name) => join(directory, name))
    .filter((name) => name.endsWith(".ts") && !name.includes("/gen/"));

export const violations = (file, text) => {
  const rule = RULES.find(({ files }) => files.test(file));
  const found = [];
  for (const [, fixed, dynamic] of text.matchAll(IMPORT)) {
    const name = fixed ?? dynamic;
    if (name.startsWith("@nats-io/") && !(rule.nats?.test(name) ?? false))
      found.push(`${file} imports ${name}: only wire/ may import NATS`);
    if (!name.startsWith(".")) continue;
    const target = relative(root, resolve(root, dirname(file), name)).replace(/\.js$/, ".ts");
    if (!rule.may.some((pattern) => pattern.test(target)))
      found.push(`${file} imports ${target}, which its place does not allow`);
  }
  return found;
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const all = ["proto", "agent", "control"]
    .flatMap(sources)
    .flatMap((file) => violations(file, readFileSync(join(root, file), "utf8")));
  for (const line of all) console.error(line);
  if (all.length > 0) process.exit(1);
}
