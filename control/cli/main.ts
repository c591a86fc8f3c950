#!/usr/bin/env node
import { Command } from "commander";
import { VERSION } from "../../proto/version.js";
import { addAuthority } from "./commands/authority.js";
import { addCreds } from "./commands/creds.js";
import { addDescribe } from "./commands/describe.js";
import { addExec } from "./commands/exec.js";
import { addFiles } from "./commands/files.js";
import { addPing } from "./commands/ping.js";
import { addPlane } from "./commands/plane.js";
import { addRevoke } from "./commands/revoke.js";
import { addToken } from "./commands/token.js";
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
const asking = program.commands.filter((command) => !STARTERS.has(command.name()));

addRevoke(program);
const issuing = [...addToken(program), ...addCreds(program), ...addAuthority(program)];
issuing.push(...program.commands.filter((command) => command.name() === "revoke"));

const all = program.commands.flatMap((command) => [command, ...command.commands]);
for (const command of all) command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : USAGE));
for (const command of [...asking, ...issuing]) {
  command.option("--url <url>", "nats-server to use (FARHAND_URL)");
  command.option("--ca <file>", "certificate that the server's must be signed by (FARHAND_CA)");
  command.option("-w, --workspace <name>", "workspace meant where none is named (FARHAND_WORKSPACE)");
  command.option("--json", "print JSON for scripts");
}
for (const command of asking) command.option("--creds <file>", "credentials to use (FARHAND_CREDS)");

// A reader that has seen enough (| head) is not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

await program.parseAsync();
