import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Credentials } from "../../../control/credentials.js";
import { createFarhand } from "../../../control/farhand.js";
import type { Machine } from "../../../control/machine.js";
import { createNatsRpc } from "../../../control/wire/nats-rpc.js";
import { type Identity, readIdentity } from "../../../agent/identity/identity.js";
import { type AgentProcess, serving, startAgentProcess } from "../../support/agent.js";
import { atEnd } from "../../support/at-end.js";
import type { OperatorBus } from "../../support/operator.js";
import { temporaryDirectory } from "../../support/temporary.js";

/** Where a machine keeps its things, and how its commands are started. */
export interface Place {
  readonly root: string;
  readonly stateDir: string;
  join(args: readonly string[], stdin?: string): AgentProcess;
  run(args?: readonly string[]): AgentProcess;
  identity(): Identity;
}

export const newPlace = (): Place => {
  const directory = temporaryDirectory();
  const [root, stateDir] = [join(directory, "root"), join(directory, "state")];
  mkdirSync(root);
  const own = ["--root", root, "--state", stateDir];
  return {
    root,
    stateDir,
    join: (args, stdin) => startAgentProcess(["join", ...own, ...args], {}, stdin),
    run: (args = []) => startAgentProcess(["run", ...own, ...args]),
    identity() {
      const identity = readIdentity(stateDir);
      if (identity === undefined) throw new Error("not joined");
      return identity;
    },
  };
};

/** A client that commands machines with these credentials, closed with the test. */
export const clientFor = (bus: OperatorBus, credentials: Credentials, machine = "m1"): Machine => {
  const rpc = createNatsRpc({ servers: [bus.url], name: "test", credentials });
  const farhand = createFarhand({ rpc, workspace: "w1", credentials });
  atEnd(() => farhand.close());
  return farhand.machine(machine);
};

export interface JoinedMachine {
  readonly place: Place;
  readonly agent: AgentProcess;
  readonly credentials: Credentials;
  readonly machine: Machine;
}

/** A machine that has joined and serves, with a client. */
export const joinMachine = async (bus: OperatorBus, name = "m1"): Promise<JoinedMachine> => {
  const place = newPlace();
  const agent = place.join(["--name", name, "--token-file", "-"], await bus.token());
  await serving(agent);
  const credentials = await bus.control();
  return { place, agent, credentials, machine: clientFor(bus, credentials, name) };
};

const read = (path: string): string => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // The process has gone, or is somebody else's.
    return "";
  }
};

/** The processes whose command line or environment contains the text. */
export const processesThatShow = (text: string): string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`])
    .filter((path) => read(path).includes(text));
