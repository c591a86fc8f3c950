// Builds dist/ and links the two commands, so that `npx farhand` works in the clone.
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { bin, root, run } from "./setup.mjs";

export const build = () => {
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"]);
  mkdirSync(join(root, "node_modules", ".bin"), { recursive: true });
  for (const [name, file] of [
    ["farhand", "dist/control/cli/main.js"],
    ["farhand-agent", "dist/agent/main.js"],
  ]) {
    chmodSync(join(root, file), 0o755);
    rmSync(bin(name), { force: true });
    symlinkSync(join("..", "..", file), bin(name));
  }
};

if (
  process.argv[1] === new URL(import.meta.url).pathname &&
  existsSync(join(root, "node_modules/typescript"))
)
  build();
