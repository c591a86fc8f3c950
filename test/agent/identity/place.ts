import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Identity, readIdentity } from "../../../agent/identity/identity.js";
import { AGENT_MAIN, type AgentProcess, startAgentProcess } from "../../support/agent.js";
import { atEnd } from "../../support/at-end.js";
import { temporaryDirectory } from "../../support/temporary.js";

/** Where a machine keeps its things, and how the agent's commands are started there. */
export interface Place {
  readonly root: string;
  readonly stateDir: string;
  readonly identityFile: string;
  join(args: readonly string[]): AgentProcess;
  /** Joins with a token in a file. */
  joinWith(token: string, args?: readonly string[]): AgentProcess;
  /** Joins with a token on standard input; the process is ended with the test. */
  joinFromStdin(token: string, args: readonly string[]): ChildProcess;
  run(): AgentProcess;
  hasIdentity(): boolean;
  identity(): Identity;
}

export const newPlace = (): Place => {
  const directory = temporaryDirectory();
  const [root, stateDir, tokenFile] = ["root", "state", "token"].map((part) => join(directory, part)) as [
    string,
    string,
    string,
  ];
  mkdirSync(root);
  const own = ["--root", root, "--state", stateDir];
  const identityFile = join(stateDir, "identity.json");
  const joinHere = (args: readonly string[]): AgentProcess => startAgentProcess(["join", ...own, ...args]);
  return {
    root,
    stateDir,
    identityFile,
    join: joinHere,
    joinWith(token, args = []) {
      writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
      return joinHere(["--token-file", tokenFile, ...args]);
    },
    joinFromStdin(token, args) {
      const child = spawn(process.execPath, [AGENT_MAIN, "join", ...own, "--token-file", "-", ...args], {
        stdio: ["pipe", "ignore", "ignore"],
      });
      const exited = once(child, "exit");
      atEnd(async () => {
        child.kill("SIGKILL");
        await exited;
      });
      child.stdin.end(`${token}\n`);
      return child;
    },
    run: () => startAgentProcess(["run", ...own]),
    hasIdentity: () => existsSync(identityFile),
    identity() {
      const identity = readIdentity(stateDir);
      if (identity === undefined) throw new Error("not joined");
      return identity;
    },
  };
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
