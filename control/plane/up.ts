import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { FarhandError } from "../../proto/farhand-error.js";
import { privateDirectory } from "../../proto/home.js";
import { AGENT_EXIT } from "../../proto/limits.js";
import { removeContext, writeContext } from "../context.js";
import { createFarhand } from "../farhand.js";
import { createNatsRpc } from "../wire/nats-rpc.js";
import { type Child, startChild } from "./child.js";
import { findNatsServer } from "./nats-binary.js";
import { checkPort, startNatsServer } from "./nats-server.js";
import { startPlane } from "./plane.js";
import { lockUp } from "./up-lock.js";

export interface UpOptions {
  readonly home: string;
  readonly port: number;
  readonly natsServer?: string | undefined;
  /** Root of the local machine; its home directory if absent. */
  readonly root?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly say: (line: string) => void;
}

export interface Up {
  readonly url: string;
  readonly natsServer: string;
  readonly natsVersion: string;
  readonly logs: string;
  readonly machine: string;
  /** Resolves when something that cannot be restarted has ended. */
  readonly failed: Promise<string>;
  stop(): Promise<void>;
}

export const LOCAL = { workspace: "default", machine: "local" } as const;

const AGENT_MAIN = fileURLToPath(new URL("../../agent/main.js", import.meta.url));
const STOP_MS = 15_000;
const RESTART_MS = 1_000;
const READY_MS = 15_000;
const FINAL_EXITS: ReadonlySet<number | string> = new Set([
  AGENT_EXIT.alreadyRunning,
  AGENT_EXIT.superseded,
  AGENT_EXIT.usage,
]);

const prepareHome = (home: string): void => {
  try {
    for (const directory of [home, join(home, "nats"), join(home, "logs"), join(home, "agent")]) {
      privateDirectory(directory);
      accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    }
  } catch (error) {
    throw new FarhandError(
      "denied",
      `the data directory ${home} cannot be written: ${error instanceof Error ? error.message : String(error)}`,
      {
        advice: "make it writable for this user, or name another with FARHAND_HOME",
      },
    );
  }
};

/** Keeps a child running until told to stop: one that ends by itself is started again. */
const supervise = async (options: {
  name: string;
  start: () => Promise<Child>;
  say: (line: string) => void;
  onFinal: (line: string) => void;
}): Promise<{ stop(): Promise<void> }> => {
  let current = await options.start();
  let isStopping = false;
  const watch = async (): Promise<void> => {
    while (!isStopping) {
      const how = await current.exited;
      if (isStopping) return;
      if (FINAL_EXITS.has(how))
        return options.onFinal(`${options.name} ended with code ${how} and is not started again`);
      options.say(`${options.name} ended (${how}); starting it again`);
      await sleep(RESTART_MS);
      if (!isStopping) current = await options.start();
    }
  };
  void watch().catch((error: unknown) =>
    options.onFinal(`${options.name} could not be started again: ${FarhandError.from(error).message}`),
  );
  return {
    async stop() {
      isStopping = true;
      await current.stop(STOP_MS);
    },
  };
};

const waitForAgent = async (url: string, ended: Promise<string>): Promise<void> => {
  await using farhand = createFarhand({
    rpc: createNatsRpc({ servers: [url], name: "farhand-up" }),
    workspace: LOCAL.workspace,
  });
  const ping = async (): Promise<undefined> => {
    for (const until = performance.now() + READY_MS; ; await sleep(50)) {
      try {
        await farhand.machine(LOCAL.machine).ping({ timeoutMs: 1_000 });
        return;
      } catch (error) {
        if (performance.now() > until) throw error;
      }
    }
  };
  const failure = await Promise.race([ping(), ended]);
  if (failure !== undefined)
    throw new FarhandError("conflict", failure, { advice: "the agent's log says why" });
};

/** Brings up the bus, the control plane and an agent for this machine. */
export const up = async ({ home, port, natsServer, root, env, say }: UpOptions): Promise<Up> => {
  prepareHome(home);
  const undo: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
  };
  let fail: (line: string) => void = () => undefined;
  const failed = new Promise<string>((resolve) => (fail = resolve));
  try {
    const lock = await lockUp(home);
    undo.push(() => lock.release());
    const binary = await findNatsServer({ named: natsServer, home, env });
    await checkPort(port);
    const url = `nats://127.0.0.1:${port}`;
    const bus = await supervise({
      name: "nats-server",
      start: () => startNatsServer({ binary, home, port }),
      say,
      onFinal: fail,
    });
    undo.push(() => bus.stop());
    const plane = await startPlane({
      servers: [url],
      onProblem: (error) => say(`control plane: ${FarhandError.from(error).message}`),
    });
    undo.push(() => plane.close());
    const args = [
      "run",
      "--server",
      url,
      "--workspace",
      LOCAL.workspace,
      "--machine",
      LOCAL.machine,
      "--state",
      join(home, "agent"),
    ];
    if (root !== undefined) args.push("--root", root);
    const startAgent = async (): Promise<Child> =>
      startChild(process.execPath, [AGENT_MAIN, ...args], { logFile: join(home, "logs", "agent.log"), env });
    const agent = await supervise({ name: "farhand-agent", start: startAgent, say, onFinal: fail });
    undo.push(() => agent.stop());
    await waitForAgent(url, failed);
    writeContext(home, { url, workspace: LOCAL.workspace });
    undo.push(async () => removeContext(home));
    return {
      url,
      natsServer: binary.path,
      natsVersion: binary.version,
      logs: join(home, "logs"),
      machine: `${LOCAL.workspace}/${LOCAL.machine}`,
      failed,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
};
