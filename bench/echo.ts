// The baseline: a raw NATS subscriber that echoes, in a process of its own.
import { connect } from "@nats-io/transport-node";

const nc = await connect({ servers: process.argv[2] ?? "", noAsyncTraces: true });
nc.subscribe("bench.echo", { callback: (_error, message) => void message.respond(message.data) });
await nc.flush();
process.stdout.write("ready\n");
