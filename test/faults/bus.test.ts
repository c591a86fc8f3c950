import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createFarhand } from "../../control/farhand.js";
import { createNatsRpc } from "../../control/wire/nats-rpc.js";
import { startOpenPlane } from "../../control/plane/plane.js";
import { connectTo, startPair } from "../support/agent.js";
import { atEnd } from "../support/at-end.js";
import { faultOf } from "../support/fails.js";
import { freePort, startNatsServer } from "../support/nats-server.js";
import { pause } from "../support/processes.js";
import { rawConnection } from "../support/raw.js";
import { until } from "../support/until.js";

test("with no bus at all a call is control_unavailable, and works once there is one", async () => {
  const port = await freePort();
  const farhand = connectTo(`nats://127.0.0.1:${port}`);
  const fault = await faultOf(farhand.machine("m1").ping());
  expect(fault).toMatchObject({ code: "control_unavailable", ran: "no", retryable: true, machine: "w1/m1" });
  expect(fault.advice).toContain("farhand up");
});

test("nothing dials until the first request", async () => {
  const server = await startNatsServer(`http: "127.0.0.1:${await freePort()}"`);
  const rpc = createNatsRpc({ servers: [server.url], name: "lazy" });
  const farhand = createFarhand({ rpc, workspace: "w1" });
  atEnd(() => farhand.close());
  farhand.machine("m1");
  const nc = await rawConnection(server.url);
  const id = nc.info?.client_id ?? 0;
  await faultOf(farhand.machine("m1").ping());
  const later = await rawConnection(server.url);
  expect((later.info?.client_id ?? 0) - id).toBe(2);
});

test("a machine that nobody has heard of is offline, never not found", async () => {
  const server = await startNatsServer();
  const fault = await faultOf(connectTo(server.url).machine("nobody").ping());
  expect(fault).toMatchObject({ code: "agent_offline", reason: "agent_offline", ran: "no", retryable: true });
});

test("a machine that was there a moment ago is reconnecting; one that said goodbye is offline", async () => {
  const { server, agent, machine, restartAgent } = await startPair();
  const plane = await startOpenPlane({
    servers: [server.url],
    onProblem: (error) => expect(error).toBeUndefined(),
  });
  atEnd(() => plane.close());
  await machine.ping();
  await agent.kill("SIGKILL");
  expect(await faultOf(machine.ping())).toMatchObject({ code: "agent_reconnecting", ran: "no" });

  const second = await restartAgent();
  await until("the plane has heard of it", () => plane.directory.seen("w1/m1").ageMs);
  const stranger = connectTo(server.url).machine("m1");
  await second.kill("SIGKILL");
  expect(await faultOf(stranger.ping())).toMatchObject({ code: "agent_reconnecting" });

  const third = await restartAgent();
  await third.kill("SIGTERM");
  await until("the goodbye has arrived", () => plane.directory.seen("w1/m1").goodbye);
  expect(await faultOf(connectTo(server.url).machine("m1").ping())).toMatchObject({ code: "agent_offline" });
});

test("a request under way while nats-server is killed and started again runs once and is answered", async () => {
  const { server, machine, root } = await startPair();
  const counter = join(root, "count");
  const running = machine.commands.run(`echo run >> ${counter}; sleep 1.5; echo done`, { timeoutMs: 20_000 });
  await until("the command has begun", () => readFileSync(counter, "utf8"));
  await server.kill("SIGKILL");
  await server.start();
  const result = await running;
  expect(result).toMatchObject({ stdout: "done\n", exitCode: 0 });
  expect(readFileSync(counter, "utf8")).toBe("run\n");
});

test("while our own link is down a new call fails at once and blames nobody else", async () => {
  const { server, machine } = await startPair();
  await machine.ping();
  await server.kill("SIGKILL");
  const fault = await until("a refused call", async () => {
    const startedAt = performance.now();
    // One that was handed over in the moment of the drop waits for the link as long as it may.
    const error = await faultOf(machine.ping({ timeoutMs: 500 }));
    return error.code === "control_unavailable" && performance.now() - startedAt < 200 ? error : undefined;
  });
  expect(fault.ran).toBe("no");
  await server.start();
  await until("the machine answers again", () => machine.ping().catch(() => undefined), 15_000);
});

test("a server that stops answering is our own link's fault, not the machine's", async () => {
  const { server, machine } = await startPair();
  await machine.ping();
  await pause(server.pid);
  const fault = await faultOf(machine.ping({ timeoutMs: 300 }));
  expect(fault).toMatchObject({ code: "control_unavailable", ran: "maybe" });
  server.signal("SIGCONT");
});

test("an answer to another request, or bytes that are no answer, are protocol and not offline", async () => {
  const server = await startNatsServer();
  const nc = await rawConnection(server.url);
  const answers = [Buffer.from("\n\u0005other\u0052\u0000"), Buffer.from([0xff, 0xff]), Buffer.alloc(0)];
  nc.subscribe("agent.w1.m1.rpc", { callback: (_error, message) => void message.respond(answers.shift()) });
  const machine = connectTo(server.url).machine("m1");
  await nc.flush();
  for (const says of [/another request/, /not a ControlResponse/, /another request/]) {
    const fault = await faultOf(machine.ping());
    expect(fault).toMatchObject({ code: "protocol", ran: "maybe" });
    expect(fault.message).toMatch(says);
  }
});
