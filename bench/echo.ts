// The baseline: a raw NATS subscriber that echoes, in a process of its own.
import { readFileSync } from "node:fs";
import { connect, jwtAuthenticator } from "@nats-io/transport-node";

const [url = "", userFile = ""] = process.argv.slice(2);
const { jwt, seed }: { jwt: string; seed: string } = JSON.parse(readFileSync(userFile, "utf8"));
const nc = await connect({
  servers: url,
  noAsyncTraces: true,
  authenticator: jwtAuthenticator(jwt, Buffer.from(seed)),
});
nc.subscribe("bench.echo", { callback: (_error, message) => void message.respond(message.data) });
await nc.flush();
process.stdout.write("ready\n");
