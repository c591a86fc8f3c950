#!/usr/bin/env node
import { Command } from "commander";
import { FarhandError } from "../proto/farhand-error.js";
import { FAULTS } from "../proto/faults.js";
import { AGENT_EXIT } from "../proto/limits.js";
import { VERSION } from "../proto/version.js";

interface RunFlags {
  server?: string[];
  workspace?: string;
  machine?: string;
  root?: string;
  state?: string;
  drainGraceMs?: string;
  logLevel?: string;
}

const asNumber = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text);

const run = async (flags: RunFlags): Promise<number> => {
  const [{ loadConfig }, { createLog }, { startAgent }] = await Promise.all([
    import("./config.js"),
    import("./log.js"),
    import("./agent.js"),
  ]);
  const env = process.env;
  const config = loadConfig(
    {
      servers: flags.server ?? env["FARHAND_URL"]?.split(","),
      workspace: flags.workspace,
      machine: flags.machine,
      root: flags.root,
      stateDir: flags.state,
      drainGraceMs: asNumber(flags.drainGraceMs),
      logLevel: flags.logLevel,
    },
    env,
  );
  const log = await createLog(config.logLevel);
  const agent = await startAgent({ config, log });
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (++signals > 1) process.exit(AGENT_EXIT.failure);
    log.info({ signal }, "stopping: finishing what runs; a second signal stops at once");
    void agent.stop();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return agent.stopped;
};

const fail = (thrown: unknown): number => {
  const error = FarhandError.from(thrown);
  process.stderr.write(`farhand-agent: ${error.message}\n  ${error.advice}\n`);
  if (error.code === "conflict") return AGENT_EXIT.alreadyRunning;
  return FAULTS[error.code].exit;
};

const program = new Command("farhand-agent")
  .description("Lets this machine be worked on from afar: dials out to the bus and answers requests.")
  .version(VERSION)
  .showHelpAfterError("(farhand-agent --help shows the commands)");

program
  .command("run")
  .description("connect and serve until stopped")
  .option("--server <url...>", "nats-server to dial (FARHAND_URL)")
  .option("--workspace <name>", "workspace of this machine (default: default)")
  .option("--machine <name>", "name of this machine")
  .option("--root <dir>", "where relative paths and commands start (default: the home directory)")
  .option("--state <dir>", "where the agent keeps its state (default: FARHAND_HOME/agent)")
  .option("--drain-grace-ms <ms>", "how long running work may take to finish at a stop (default: 10000)")
  .option("--log-level <level>", "fatal, error, warn, info, debug or trace (default: info)")
  .addHelpText("after", "\nExample:\n  farhand-agent run --server nats://127.0.0.1:4222 --machine my-laptop")
  .action(async (flags: RunFlags) => process.exit(await run(flags).catch(fail)));

await program.parseAsync();
