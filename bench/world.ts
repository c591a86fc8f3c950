import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Authority } from "../control/authority/authority.js";
import { createFarhand } from "../control/farhand.js";
import type { Machine } from "../control/machine.js";
import { createNatsRpc } from "../control/wire/nats-rpc.js";
import { startBus } from "./bus.js";

/** Everything that is measured, in processes of their own, and how to end it. */
export interface World {
  readonly url: string;
  readonly root: string;
  readonly raw: NatsConnection;
  readonly authority: Authority;
  readonly machine: Machine;
  /** A machine with `--auth bus`: no proofs, neither of requests nor of answers. */
  readonly plainMachine: Machine;
  readonly agentPid: number;
  /** From the start of the agent's process to its first answer. */
  readonly agentReadyMs: number;
  /** A peer to stand beside us; undefined where its package could not be installed. */
  readonly sandboxAgentUrl: string | undefined;
  close(): Promise<void>;
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Installed by scripts/bench.mjs. */
const PEER = here(
  "../../node_modules/.cache/farhand-bench/node_modules/@sandbox-agent/cli-linux-x64/bin/sandbox-agent",
);

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
};

const answers = async (url: string): Promise<void> => {
  for (let tries = 0; tries < 200; tries++, await sleep(25)) {
    const response = await fetch(url).catch(() => undefined);
    if (response !== undefined) return;
  }
  throw new Error(`${url} does not answer`);
};

const startSandboxAgent = async (
  directory: string,
  start: (command: string, args: string[]) => ChildProcess,
): Promise<string> => {
  const binary = join(directory, "sandbox-agent");
  copyFileSync(PEER, binary);
  chmodSync(binary, 0o755);
  const port = await freePort();
  start(binary, ["server", "--host", "127.0.0.1", "--port", String(port), "--no-token", "--no-telemetry"]);
  const url = `http://127.0.0.1:${port}`;
  await answers(`${url}/v1/health`);
  return url;
};

/** Waits until a process has printed a line with this in it. */
const firstLine = async ({ stdout }: ChildProcess, part: string): Promise<void> => {
  if (stdout === null) throw new Error("no output");
  for await (const line of createInterface({ input: stdout })) if (line.includes(part)) return;
  throw new Error(`it ended without saying ${part}`);
};

export const createWorld = async (): Promise<World> => {
  const directory = mkdtempSync(join(tmpdir(), "farhand-bench-"));
  const children: ChildProcess[] = [];
  const start = (command: string, args: string[]): ChildProcess => {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, HOME: directory },
    });
    children.push(child);
    return child;
  };
  const port = await freePort();
  const url = `nats://127.0.0.1:${port}`;
  const bus = await startBus(directory, port, start);
  const { raw, credentials } = bus;
  await firstLine(start(process.execPath, [here("echo.js"), url, bus.userFile]), "ready");

  const root = join(directory, "root");
  mkdirSync(root);
  const farhand = createFarhand({
    rpc: createNatsRpc({ servers: [url], name: "bench", credentials }),
    workspace: "bench",
    credentials,
  });
  const machine = farhand.machine("m1");
  const [main, state] = [here("../agent/main.js"), join(directory, "state")];
  const joined = start(process.execPath, [
    main,
    "join",
    "--token-file",
    bus.tokenFile,
    "--state",
    state,
    "--no-run",
  ]);
  await once(joined, "exit");
  const startedAt = performance.now();
  const agent = start(process.execPath, [main, "run", "--root", root, "--state", state]);
  await firstLine(agent, "serving");
  const agentReadyMs = performance.now() - startedAt;
  await machine.ping();
  const plainArgs = [
    "--auth",
    "bus",
    "--server",
    url,
    "--creds",
    bus.machineCreds,
    "--workspace",
    "bench",
    "--machine",
    "m2",
  ];
  const plainAgent = start(process.execPath, [
    main,
    "run",
    ...plainArgs,
    "--root",
    root,
    "--state",
    `${state}-2`,
  ]);
  await firstLine(plainAgent, "serving");
  const plain = createFarhand({
    rpc: createNatsRpc({ servers: [url], name: "bench-plain", credentials }),
    workspace: "bench",
  });
  const sandboxAgentUrl = existsSync(PEER) ? await startSandboxAgent(directory, start) : undefined;
  return {
    url,
    root,
    raw,
    authority: bus.authority,
    machine,
    plainMachine: plain.machine("m2"),
    agentPid: agent.pid ?? 0,
    agentReadyMs,
    sandboxAgentUrl,
    async close() {
      await farhand.close();
      await plain.close();
      await bus.close();
      for (const child of children.toReversed()) {
        child.kill("SIGTERM");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
};
