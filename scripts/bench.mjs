// npm run bench [section …]: ratios within one run; docs/benchmarks.md keeps the latest.
import { checkNode, installPackages, root, run } from "./setup.mjs";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

checkNode();
installPackages();
const { buildAll } = await import("./build.mjs");
await buildAll();

// A peer that stands beside us in the table; the bench goes on without it.
const peer = join(root, "node_modules/.cache/farhand-bench");
if (!existsSync(join(peer, "node_modules"))) {
  mkdirSync(peer, { recursive: true });
  const args = [
    "install",
    "--prefix",
    peer,
    "--no-save",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ];
  spawnSync("npm", [...args, "@sandbox-agent/cli-linux-x64@0.4.2"], {
    cwd: peer,
    stdio: ["ignore", "ignore", "inherit"],
  });
}
run(process.execPath, [join(root, "dist/bench/main.js"), ...process.argv.slice(2)]);
