import { once } from "node:events";
import { connect, createServer } from "node:net";
import { atEnd } from "../../support/at-end.js";

/** Passes bytes on to a server and keeps a copy of all of them. */
export const startRecorder = async (port: number): Promise<{ url: string; recorded: () => Buffer }> => {
  const chunks: Buffer[] = [];
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        to.write(chunk);
      });
      from.on("close", () => to.destroy());
      from.on("error", () => to.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: `nats://127.0.0.1:${address.port}`, recorded: () => Buffer.concat(chunks) };
};
