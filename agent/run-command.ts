import { AGENT_EXIT } from "../proto/limits.js";
import { startAgent } from "./agent.js";
import { loadConfig } from "./config.js";
import { createLog } from "./log.js";

export interface RunFlags {
  readonly auth?: string | undefined;
  readonly server?: readonly string[] | undefined;
  readonly workspace?: string | undefined;
  readonly machine?: string | undefined;
  readonly creds?: string | undefined;
  readonly root?: string | undefined;
  readonly state?: string | undefined;
  readonly drainGraceMs?: string | undefined;
  readonly logLevel?: string | undefined;
}

const asNumber = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text);

/** Serves until it is stopped; resolves with the exit code. */
export const runCommand = async (flags: RunFlags): Promise<number> => {
  const config = loadConfig(
    {
      auth: flags.auth,
      servers: flags.server,
      workspace: flags.workspace,
      machine: flags.machine,
      creds: flags.creds,
      root: flags.root,
      stateDir: flags.state,
      drainGraceMs: asNumber(flags.drainGraceMs),
      logLevel: flags.logLevel,
    },
    process.env,
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
