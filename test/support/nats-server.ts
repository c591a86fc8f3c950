import { atEnd } from "./at-end.js";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { findNatsServer } from "../../control/plane/nats-binary.js";
import { until } from "./until.js";

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ends it by signal and waits until it has gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port, with the same storage. */
  start(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
}

export const freePort = async (): Promise<number> => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
};

const takesConnections = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("data", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });

const cache = join(tmpdir(), "farhand-test-nats");

/** A real nats-server on a random port, ended with the test. */
export const startNatsServer = async (extraConfig = ""): Promise<TestServer> => {
  const binary = await findNatsServer({ home: cache, env: process.env });
  const directory = mkdtempSync(join(tmpdir(), "farhand-test-bus-"));
  const port = await freePort();
  const config = join(directory, "nats.conf");
  writeFileSync(
    config,
    `listen: "127.0.0.1:${port}"\nserver_name: "test-${port}"\njetstream { store_dir: ${JSON.stringify(join(directory, "js"))} }\n${extraConfig}`,
  );
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    child = spawn(binary.path, ["-c", config], { stdio: "ignore" });
    await until("nats-server takes connections", () => takesConnections(port));
  };
  const kill = async (signal: NodeJS.Signals = "SIGKILL"): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGCONT");
    child.kill(signal);
    await gone;
  };
  atEnd(async () => {
    await kill();
    rmSync(directory, { recursive: true, force: true });
  });
  await start();
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return child?.pid ?? 0;
    },
    kill,
    start,
    signal: (signal) => void child?.kill(signal),
  };
};
