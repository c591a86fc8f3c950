import { atEnd } from "./at-end.js";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { createFarhand, type Farhand } from "../../control/farhand.js";
import type { Machine } from "../../control/machine.js";
import { createNatsRpc } from "../../control/wire/nats-rpc.js";
import { startNatsServer, type TestServer } from "./nats-server.js";
import { temporaryDirectory } from "./temporary.js";
import { until } from "./until.js";

export const AGENT_MAIN = fileURLToPath(new URL("../../dist/agent/main.js", import.meta.url));

/** A line of the agent's log. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface AgentProcess {
  readonly pid: number;
  readonly log: readonly LogLine[];
  readonly stderr: () => string;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  signal(signal: NodeJS.Signals): void;
  /** Ends it and waits until it has gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

export interface AgentOptions {
  readonly url: string;
  readonly machine?: string;
  readonly workspace?: string;
  readonly stateDir: string;
  readonly root: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** A real agent on a bus without credentials; ended with the test. Does not wait until it serves. */
export const spawnAgent = (options: AgentOptions): AgentProcess => {
  const args = ["run", "--auth", "bus", "--server", options.url, "--machine", options.machine ?? "m1"];
  args.push("--workspace", options.workspace ?? "w1", "--state", options.stateDir, "--root", options.root);
  return startAgentProcess([...args, ...(options.args ?? [])], options.env);
};

/** A farhand-agent process with these arguments; ended with the test. */
export const startAgentProcess = (
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  stdin?: string,
): AgentProcess => {
  if (!existsSync(AGENT_MAIN)) throw new Error("dist is missing: run npm run build");
  const child: ChildProcess = spawn(process.execPath, [AGENT_MAIN, ...args], {
    stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  child.stdin?.end(stdin);
  const log: LogLine[] = [];
  if (child.stdout !== null)
    createInterface({ input: child.stdout }).on("line", (line) => log.push(JSON.parse(line)));
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  // Not "exit": by then its last words may not have been read yet.
  const exited = once(child, "close").then(([code, signal]: unknown[]) =>
    typeof code === "number" ? code : String(signal),
  );
  const kill = async (signal: NodeJS.Signals = "SIGKILL"): Promise<void> => {
    child.kill("SIGCONT");
    child.kill(signal);
    await exited;
  };
  atEnd(() => kill());
  return {
    pid: child.pid ?? 0,
    log,
    stderr: () => stderr,
    exited,
    signal: (signal) => void child.kill(signal),
    kill,
  };
};

export const serving = (agent: AgentProcess): Promise<LogLine> =>
  until("the agent serves", () => agent.log.find(({ msg }) => msg === "serving"));

/** A client over NATS, closed with the test. */
export const connectTo = (url: string, workspace = "w1"): Farhand => {
  const farhand = createFarhand({ rpc: createNatsRpc({ servers: [url], name: "test" }), workspace });
  atEnd(() => farhand.close());
  return farhand;
};

export interface Pair {
  readonly server: TestServer;
  readonly agent: AgentProcess;
  readonly farhand: Farhand;
  readonly machine: Machine;
  readonly root: string;
  readonly stateDir: string;
  /** Starts the agent anew on the same state, and waits until it serves. */
  restartAgent(options?: Partial<AgentOptions>): Promise<AgentProcess>;
}

/** A nats-server, a real agent process and a client. */
export const startPair = async (options: Partial<AgentOptions> = {}): Promise<Pair> => {
  const server = await startNatsServer();
  const directory = temporaryDirectory();
  const [root, stateDir] = [join(directory, "root"), join(directory, "state")];
  mkdirSync(root);
  const restartAgent = async (more: Partial<AgentOptions> = {}): Promise<AgentProcess> => {
    const started = spawnAgent({ url: server.url, root, stateDir, ...options, ...more });
    await serving(started);
    return started;
  };
  const agent = await restartAgent();
  const farhand = connectTo(server.url);
  return { server, agent, farhand, machine: farhand.machine("m1"), root, stateDir, restartAgent };
};
