import { chmodSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { FarhandError } from "../../proto/farhand-error.js";

/** A socket in the data directory: whoever answers on it is the `farhand up` that runs there. */
export interface UpLock {
  release(): Promise<void>;
}

const socketPath = (home: string): string => join(home, "up.sock");

/** The pid of the `farhand up` that runs in this directory, if one does. */
export const runningUp = (home: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = connect(socketPath(home));
    socket.setEncoding("utf8");
    socket.once("data", (text) => {
      socket.destroy();
      resolve(String(text).trim());
    });
    socket.once("error", () => resolve(undefined));
    socket.once("close", () => resolve(undefined));
  });

export const lockUp = async (home: string): Promise<UpLock> => {
  const holder = await runningUp(home);
  if (holder !== undefined) {
    throw new FarhandError("conflict", `farhand is already up in ${home} (pid ${holder})`, {
      advice: "use it as it is, stop it with Ctrl-C where it runs, or choose another FARHAND_HOME",
    });
  }
  rmSync(socketPath(home), { force: true });
  const server: Server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.end(`${process.pid}\n`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socketPath(home), resolve);
  });
  chmodSync(socketPath(home), 0o600);
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
};
