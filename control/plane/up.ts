import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { FarhandError } from "../../proto/farhand-error.js";
import { privateDirectory } from "../../proto/home.js";
import { AGENT_EXIT } from "../../proto/limits.js";
import { formatMachineRef } from "../../proto/subjects.js";
import { openKeys } from "../authority/keys.js";
import { removeContext, writeContext } from "../context.js";
import { joinLocalAgent, LOCAL, localCredentials, startLocalAgent, waitForAgent } from "./local-agent.js";
import { findNatsServer } from "./nats-binary.js";
import { checkPort, startNatsServer } from "./nats-server.js";
import { startPlane } from "./plane.js";
import { supervise } from "./supervise.js";
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
  /** Credentials for whoever works here. */
  readonly creds: string;
  readonly machine: string;
  /** Resolves when something that cannot be restarted has ended. */
  readonly failed: Promise<string>;
  stop(): Promise<void>;
}

const REJOIN =
  "To let it in again: farhand token create --name local, and farhand-agent join --force with that token.";

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
    const keys = openKeys(home);
    const bus = await supervise({
      name: "nats-server",
      start: () => startNatsServer({ binary, home, port, keys }),
      say,
      onFinal: fail,
    });
    undo.push(() => bus.stop());
    const plane = await startPlane({
      servers: [url],
      keys,
      home,
      onProblem: (error) => say(`control plane: ${FarhandError.from(error).message}`),
    });
    undo.push(() => plane.close());
    const { path: creds, credentials } = await localCredentials(plane.authority, home);
    if (await joinLocalAgent(plane.authority, { home, url, env })) {
      const agent = await supervise({
        name: "farhand-agent",
        start: () => startLocalAgent({ home, url, root, env }),
        say,
        // A machine that was revoked is no reason to take the bus from the others.
        onFinal: (line, how) => (how === AGENT_EXIT.revoked ? say(line) : fail(line)),
      });
      undo.push(() => agent.stop());
      await waitForAgent({ url, credentials, ended: failed });
    } else say(`${formatMachineRef(LOCAL)} was revoked, so no agent is started here. ${REJOIN}`);
    writeContext(home, { url, workspace: LOCAL.workspace, creds });
    undo.push(async () => removeContext(home));
    return {
      url,
      natsServer: binary.path,
      natsVersion: binary.version,
      logs: join(home, "logs"),
      creds,
      machine: formatMachineRef(LOCAL),
      failed,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
};
