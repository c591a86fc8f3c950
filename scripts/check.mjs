// npm run check: format, lint, types, generated code, house rules.
import { join } from "node:path";
import { bin, root, run } from "./setup.mjs";

export const check = () => {
  run(bin("prettier"), ["--check", "--log-level=warn", "."]);
  run(bin("oxlint"), ["--type-aware", "--deny-warnings"]);
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json"]);
  run(process.execPath, [join(root, "scripts/proto.mjs"), "--check"]);
  run(process.execPath, [join(root, "scripts/house.mjs")]);
  console.error("check: format, lint, types, generated code and house rules are in order");
};

if (process.argv[1] === new URL(import.meta.url).pathname) check();
