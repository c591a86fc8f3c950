import type { Command } from "commander";
import { FarhandError } from "../../../proto/farhand-error.js";
import { farhandHome } from "../../../proto/home.js";
import { onOut, report, say, sayJson, warn } from "../output.js";
import { numberOf } from "../session.js";

interface Flags {
  port?: string;
  natsServer?: string;
  root?: string;
  json?: boolean;
}

const DEFAULT_PORT = 4222;

const run = async (flags: Flags): Promise<number> => {
  const { up } = await import("../../plane/up.js");
  const home = farhandHome(process.env);
  const port = numberOf("--port", flags.port ?? process.env["FARHAND_PORT"]) ?? DEFAULT_PORT;
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new FarhandError("invalid", `--port: ${port} is not a port`);
  let interrupt: (signal: string) => void = () => undefined;
  const interrupted = new Promise<string>((resolve) => (interrupt = resolve));
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  const running = await up({
    home,
    port,
    natsServer: flags.natsServer,
    root: flags.root,
    env: process.env,
    say: warn,
  });
  if (flags.json === true) {
    sayJson({
      url: running.url,
      home,
      machine: running.machine,
      natsServer: running.natsServer,
      natsVersion: running.natsVersion,
      logs: running.logs,
    });
  } else {
    say(onOut("green", "farhand is up."));
    say(`  bus       ${running.url}  (nats-server ${running.natsVersion})`);
    say(`  machine   ${running.machine}`);
    say(`  data      ${home}`);
    say(`  logs      ${running.logs}`);
    say("");
    say("Try, in another terminal:");
    say(`  ${onOut("cyan", "npx farhand ping local")}`);
    say(`  ${onOut("cyan", "npx farhand exec local -- uname -a")}`);
    say(`  ${onOut("cyan", "npx farhand ls local:/tmp")}`);
    say("");
    say(onOut("dim", "Ctrl-C stops it all."));
  }
  const how = await Promise.race([interrupted.then(() => undefined), running.failed]);
  if (how !== undefined) warn(`farhand: ${how}`);
  if (flags.json !== true) say("stopping …");
  await running.stop();
  if (flags.json !== true) say("stopped.");
  return how === undefined ? 0 : 1;
};

export const addUp = (program: Command): void => {
  program
    .command("up")
    .description("start a bus, the control plane and an agent for this machine")
    .option("--port <port>", `port of the bus on loopback (FARHAND_PORT; default ${DEFAULT_PORT})`)
    .option(
      "--nats-server <path>",
      "the nats-server to run (FARHAND_NATS_SERVER; default: on PATH, else the bundled one)",
    )
    .option(
      "--root <dir>",
      "where relative paths and commands start on this machine (default: the home directory)",
    )
    .option("--json", "print one JSON object when ready")
    .addHelpText("after", "\nExamples:\n  farhand up\n  FARHAND_HOME=/srv/farhand farhand up --port 4333")
    .action(async (flags: Flags) => {
      process.exitCode = await run(flags).catch((error: unknown) => report(error, flags.json === true));
    });
};
