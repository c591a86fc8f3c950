import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Credentials } from "../../control/credentials.js";
import { createFarhand } from "../../control/farhand.js";
import type { Machine } from "../../control/machine.js";
import { createNatsRpc } from "../../control/wire/nats-rpc.js";
import { type AgentProcess, serving, startAgentProcess } from "./agent.js";
import { atEnd } from "./at-end.js";
import { type OperatorBus, startOperatorBus } from "./operator.js";
import { temporaryDirectory } from "./temporary.js";

export interface JoinedMachine {
  readonly name: string;
  readonly workspace: string;
  readonly stateDir: string;
  readonly root: string;
  /** Runs the agent, and waits until it serves. */
  run(): Promise<AgentProcess>;
}

/** Joins a real machine to the bus with a token, as its owner would. */
export const joinMachine = async (
  bus: OperatorBus,
  {
    name = "m1",
    workspace = "w1",
    args = [],
  }: { name?: string; workspace?: string; args?: readonly string[] } = {},
): Promise<JoinedMachine> => {
  const directory = temporaryDirectory();
  const [root, stateDir, tokenFile] = ["root", "state", "token"].map((part) => join(directory, part)) as [
    string,
    string,
    string,
  ];
  mkdirSync(root);
  writeFileSync(tokenFile, await bus.token({ workspace, machine: name }), { mode: 0o600 });
  const joining = startAgentProcess([
    "join",
    "--token-file",
    tokenFile,
    "--state",
    stateDir,
    "--no-run",
    ...args,
  ]);
  const code = await joining.exited;
  if (code !== 0 || !existsSync(join(stateDir, "identity.json")))
    throw new Error(`join: ${code}: ${joining.stderr()}`);
  return {
    name,
    workspace,
    stateDir,
    root,
    async run() {
      const agent = startAgentProcess(["run", "--state", stateDir, "--root", root]);
      await serving(agent);
      return agent;
    },
  };
};

/** A machine as somebody with these credentials sees it. */
export const machineFor = (bus: Pick<OperatorBus, "url">, credentials: Credentials, name = "m1"): Machine => {
  const rpc = createNatsRpc({ servers: [bus.url], name: "test", credentials });
  const farhand = createFarhand({ rpc, workspace: credentials.certificate.workspace, credentials });
  atEnd(() => farhand.close());
  return farhand.machine(name);
};

export interface JoinedPair {
  readonly bus: OperatorBus;
  readonly joined: JoinedMachine;
  readonly agent: AgentProcess;
  readonly credentials: Credentials;
  readonly machine: Machine;
}

/** A bus in operator mode, a joined machine that serves, and an operator's client. */
export const startJoined = async (options: { agentJwtMs?: number } = {}): Promise<JoinedPair> => {
  const bus = await startOperatorBus(options);
  const joined = await joinMachine(bus);
  const agent = await joined.run();
  const credentials = await bus.control();
  return { bus, joined, agent, credentials, machine: machineFor(bus, credentials) };
};
