#!/usr/bin/env node
import { Command } from "commander";
import { VERSION } from "../../proto/version.js";
import { addDescribe } from "./commands/describe.js";
import { addExec } from "./commands/exec.js";
import { addFiles } from "./commands/files.js";
import { addPing } from "./commands/ping.js";
import { addPlane } from "./commands/plane.js";
import { addUp } from "./commands/up.js";

const USAGE = 64;

/** They start something instead of asking a machine, and have options of their own. */
const STARTERS = new Set(["up", "plane"]);

const program = new Command("farhand")
  .description("Work on machines that you do not host.")
  .version(VERSION)
  .enablePositionalOptions()
  .showHelpAfterError("(farhand --help shows the commands)")
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : USAGE));

addUp(program);
addPlane(program);
addPing(program);
addExec(program);
addFiles(program);
addDescribe(program);

for (const command of program.commands) {
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : USAGE));
  if (STARTERS.has(command.name())) continue;
  command.option("--url <url>", "nats-server to use (FARHAND_URL)");
  command.option("-w, --workspace <name>", "workspace of machines named without one (FARHAND_WORKSPACE)");
  command.option("--json", "print JSON for scripts");
}

// A reader that has seen enough (| head) is not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

await program.parseAsync();
