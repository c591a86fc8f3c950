import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { startAgent } from "../../agent/agent.js";
import { loadConfig } from "../../agent/config.js";
import { connectTo } from "../support/agent.js";
import { atEnd } from "../support/at-end.js";
import { startNatsServer } from "../support/nats-server.js";
import { ask, errorOf, rawConnection, rawRequest } from "../support/raw.js";
import { temporaryDirectory } from "../support/temporary.js";

const HOUR = 3_600_000;

/** An agent in this process, whose clock is wrong by so much. */
const startSkewed = async (skewMs: number) => {
  const server = await startNatsServer();
  const directory = temporaryDirectory();
  const root = join(directory, "root");
  mkdirSync(root);
  const config = loadConfig(
    {
      auth: "bus",
      servers: [server.url],
      machine: "m1",
      workspace: "w1",
      root,
      stateDir: join(directory, "state"),
    },
    {},
  );
  const agent = await startAgent({ config, log: pino({ level: "silent" }), now: () => Date.now() + skewMs });
  atEnd(() => agent.stop());
  return { server, root, machine: connectTo(server.url).machine("m1") };
};

test.each([HOUR, -HOUR, 5_000, -5_000])(
  "a machine whose clock is %i ms off answers, and runs a command once",
  async (skewMs) => {
    const { machine } = await startSkewed(skewMs);
    const twice = [1, 2].map(() => machine.commands.run("date +%N", { requestId: "skewed" }));
    const [first, second] = await Promise.all(twice);
    expect(second).toEqual(first);
    expect(await machine.ping()).toBeGreaterThan(0);
  },
);

test.each([HOUR, -HOUR])("with a clock %i ms off the fence holds", async (skewMs) => {
  const { machine } = await startSkewed(skewMs);
  await machine.under({ scope: "s", epoch: 2n }).files.write("a", "x");
  await expect(machine.under({ scope: "s", epoch: 1n }).files.write("a", "y")).rejects.toThrow(
    expect.objectContaining({ code: "fenced" }),
  );
});

test.each([HOUR, -HOUR])(
  "with a clock %i ms off an old message is refused, and so is one from the future",
  async (skewMs) => {
    const { server, root } = await startSkewed(skewMs);
    const nc = await rawConnection(server.url);
    const machineNow = Date.now() + skewMs;
    const op = {
      $case: "fsWrite" as const,
      value: {
        path: "f",
        data: Buffer.from("x"),
        append: false,
        ifMatch: "",
        ifNoneMatch: false,
        createParents: false,
      },
    };
    const old = rawRequest({
      issuedMs: BigInt(machineNow - 10_000),
      deadlineMs: BigInt(machineNow - 5_000),
      op,
    });
    const future = rawRequest({
      issuedMs: BigInt(machineNow + 10_000),
      deadlineMs: BigInt(machineNow + 20_000),
      op,
    });
    for (const payload of [old, future]) {
      expect(errorOf(await ask(nc, "agent.w1.m1.rpc", payload))).toMatchObject({
        code: "expired",
        ran: "no",
      });
    }
    expect(existsSync(join(root, "f"))).toBe(false);
  },
);
