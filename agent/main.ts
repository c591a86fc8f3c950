#!/usr/bin/env node
import { Command } from "commander";
import { FarhandError } from "../proto/farhand-error.js";
import { FAULTS } from "../proto/faults.js";
import { AGENT_EXIT } from "../proto/limits.js";
import { VERSION } from "../proto/version.js";
import type { JoinFlags } from "./join-command.js";
import type { RunFlags } from "./run-command.js";

// Setting the title overwrites the memory that `ps` shows, and with it a token given as an argument.
if (process.argv[2] === "join") process.title = "farhand-agent";

const run = async (flags: RunFlags): Promise<number> => {
  const { runCommand } = await import("./run-command.js");
  return runCommand(flags);
};

const join = async (token: string | undefined, flags: JoinFlags & RunFlags & { run: boolean }) => {
  const { joinCommand } = await import("./join-command.js");
  await joinCommand(token, flags);
  return flags.run ? run(flags) : AGENT_EXIT.ok;
};

const fail = (thrown: unknown): number => {
  const error = FarhandError.from(thrown);
  process.stderr.write(`farhand-agent: ${error.message}\n  ${error.advice}\n`);
  if (error.code === "conflict" && "pid" in error.detail) return AGENT_EXIT.alreadyRunning;
  return FAULTS[error.code].exit;
};

/** Options of everything that serves. */
const serving = (command: Command): Command =>
  command
    .option("--root <dir>", "where relative paths and commands start (default: the home directory)")
    .option("--state <dir>", "where the agent keeps its identity and state (default: FARHAND_HOME/agent)")
    .option("--drain-grace-ms <ms>", "how long running work may take to finish at a stop (default: 10000)")
    .option("--log-level <level>", "fatal, error, warn, info, debug or trace (default: info)");

const program = new Command("farhand-agent")
  .description("Lets this machine be worked on from afar: dials out to the bus and answers requests.")
  .version(VERSION)
  .showHelpAfterError("(farhand-agent --help shows the commands)");

serving(program.command("join"))
  .description("make this machine a member of a workspace, and serve")
  .argument("[token]", "what farhand token create printed")
  .option("--token-file <file>", "read the token from a file, or from standard input (-)")
  .option("--name <name>", "name of this machine (default: the token's, else the host name)")
  .option("--force", "replace the identity that this machine has, or take over the name of another one")
  .option("--no-run", "only join")
  .addHelpText("after", "\nExample:\n  farhand-agent join --token-file - < token")
  .action(async (token: string | undefined, flags: JoinFlags & RunFlags & { run: boolean }) =>
    process.exit(await join(token, flags).catch(fail)),
  );

serving(program.command("run"))
  .description("connect and serve until stopped, as the machine that this one joined as")
  .option(
    "--auth <mode>",
    "who vouches for callers: end-to-end (default), or bus for one that is secured already",
  )
  .option("--server <url...>", "with --auth bus: nats-server to dial (FARHAND_URL)")
  .option("--workspace <name>", "with --auth bus: workspace of this machine (default: default)")
  .option("--machine <name>", "with --auth bus: name of this machine")
  .option("--creds <file>", "with --auth bus: NATS creds file")
  .addHelpText(
    "after",
    "\nExamples:\n  farhand-agent run" +
      "\n  farhand-agent run --auth bus --server nats://127.0.0.1:4222 --machine my-laptop",
  )
  .action(async (flags: RunFlags) => process.exit(await run(flags).catch(fail)));

await program.parseAsync();
