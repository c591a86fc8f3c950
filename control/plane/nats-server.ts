import { readFileSync, writeFileSync } from "node:fs";
import { connect as dial, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FarhandError } from "../../proto/farhand-error.js";
import type { AuthorityKeys } from "../authority/keys.js";
import { operatorConfig } from "../authority/server-config.js";
import { type Child, startChild } from "./child.js";
import type { NatsBinary } from "./nats-binary.js";

export interface NatsServerOptions {
  readonly binary: NatsBinary;
  readonly home: string;
  readonly port: number;
  /** Whose credentials it takes: there is no bus without. */
  readonly keys: AuthorityKeys;
}

const HOST = "127.0.0.1";
const READY_MS = 15_000;

const config = async ({
  home,
  port,
  keys,
}: NatsServerOptions): Promise<string> => `# Written by farhand up at every start.
server_name: farhand
listen: "${HOST}:${port}"
pid_file: ${JSON.stringify(join(home, "nats", "nats-server.pid"))}
jetstream { store_dir: ${JSON.stringify(join(home, "nats", "jetstream"))} }
ping_interval: "20s"
${await operatorConfig(keys, home)}`;

/** Throws a clear line while it can still say which port and why. */
export const checkPort = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        new FarhandError(
          "conflict",
          error.code === "EADDRINUSE"
            ? `port ${port} is in use by another program`
            : `port ${port} cannot be used: ${error.message}`,
          {
            advice: "stop what listens there, or choose another port with --port",
          },
        ),
      ),
    );
    probe.listen(port, HOST, () => probe.close(() => resolve()));
  });

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = dial(port, HOST);
    const done = (is: boolean) => (): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once("data", done(true));
    socket.once("error", done(false));
  });

const lastLines = (file: string): string => {
  try {
    return readFileSync(file, "utf8").trim().split("\n").slice(-3).join(" | ");
  } catch {
    return "";
  }
};

/** Starts the server and resolves when it takes connections. */
export const startNatsServer = async (options: NatsServerOptions): Promise<Child> => {
  const file = join(options.home, "nats", "nats-server.conf");
  const logFile = join(options.home, "logs", "nats-server.log");
  writeFileSync(file, await config(options), { mode: 0o600 });
  const child = startChild(options.binary.path, ["-c", file], { logFile });
  let ended: number | string | undefined;
  void child.exited.then((how) => (ended = how));
  for (const until = performance.now() + READY_MS; performance.now() < until;) {
    if (ended !== undefined) {
      throw new FarhandError(
        "control_unavailable",
        `nats-server ended at once (${ended}): ${lastLines(logFile)}`,
        { advice: `its log is ${logFile}` },
      );
    }
    if (await answers(options.port)) return child;
    await sleep(20);
  }
  await child.stop(0);
  throw new FarhandError(
    "control_unavailable",
    `nats-server did not become ready within ${READY_MS / 1000} s`,
    { advice: `its log is ${logFile}` },
  );
};
