// Generates proto/gen from the .proto files; with --check, fails when what is committed differs.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, readdirSync, rmSync, mkdirSync, cpSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);
const out = mkdtempSync(join(tmpdir(), "farhand-proto-"));

const options = [
  "esModuleInterop=true",
  "importSuffix=.js",
  "oneof=unions-value",
  "forceLong=bigint",
  "enumsAsLiterals=true",
  "useExactTypes=false",
  "unknownFields=true",
  "outputServices=none",
  "outputJsonMethods=false",
  "outputPartialMethods=true",
  "outputTypeRegistry=false",
  "removeEnumPrefix=false",
].join(",");

const files = readdirSync(join(root, "proto")).filter((name) => name.endsWith(".proto"));
execFileSync(
  process.execPath,
  [
    require.resolve("protoc/protoc.cjs"),
    `--plugin=protoc-gen-ts_proto=${join(root, "node_modules/.bin/protoc-gen-ts_proto")}`,
    `--ts_proto_out=${out}`,
    `--ts_proto_opt=${options}`,
    `--proto_path=${join(root, "proto")}`,
    ...files,
  ],
  { stdio: "inherit" },
);

const committed = join(root, "proto/gen");
const generated = readdirSync(out).toSorted();
if (process.argv.includes("--check")) {
  const present = existsSync(committed) ? readdirSync(committed).toSorted() : [];
  const stale =
    present.join() !== generated.join()
      ? ["the list of files"]
      : generated.filter(
          (name) => !readFileSync(join(out, name)).equals(readFileSync(join(committed, name))),
        );
  rmSync(out, { recursive: true });
  if (stale.length > 0) {
    console.error(`proto/gen is not current (${stale.join(", ")}): run npm run generate and commit`);
    process.exit(1);
  }
} else {
  rmSync(committed, { recursive: true, force: true });
  mkdirSync(committed, { recursive: true });
  cpSync(out, committed, { recursive: true });
  rmSync(out, { recursive: true });
}
