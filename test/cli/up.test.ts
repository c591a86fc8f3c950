import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../control/connect.js";
import { FAULTS } from "../../proto/faults.js";
import { atEnd } from "../support/at-end.js";
import { cli, startUp } from "../support/cli.js";
import { freePort } from "../support/nats-server.js";
import { isAlive } from "../support/processes.js";
import { temporaryDirectory } from "../support/temporary.js";
import { until } from "../support/until.js";

const natsPid = (home: string): number => Number(readFileSync(join(home, "nats", "nats-server.pid"), "utf8"));

const agentPid = (home: string): number => {
  const lines = readFileSync(join(home, "logs", "agent.log"), "utf8")
    .trim()
    .split("\n");
  return JSON.parse(lines.findLast((line) => line.includes('"serving"')) ?? "{}").pid;
};

test("up brings up bus, plane and agent, the other commands find them, and Ctrl-C ends it all", async () => {
  const home = temporaryDirectory();
  const root = temporaryDirectory();
  const up = await startUp(home, await freePort(), ["--root", root]);
  expect(up.stdout()).toContain("machine   default/local");
  expect(up.stdout().match(/npx farhand/g)).toHaveLength(3);
  const { env } = up;
  expect((await cli(["exec", "local", "--", "echo", "hi"], { env })).stdout).toBe("hi\n");
  expect((await cli(["write", "local:notes.txt"], { env, stdin: "hi\n" })).code).toBe(0);
  expect(readFileSync(join(root, "notes.txt"), "utf8")).toBe("hi\n");
  expect((await cli(["ping", "-c", "1", "local"], { env })).stdout).toContain("1 answered");
  for (const path of [home, join(home, "agent")]) expect(statSync(path).mode & 0o077).toBe(0);
  expect(statSync(join(home, "context.json")).mode & 0o077).toBe(0);

  const pids = [natsPid(home), agentPid(home)];
  expect(pids.map(isAlive)).toEqual([true, true]);
  up.child.kill("SIGINT");
  expect((await up.ended).code).toBe(0);
  expect(pids.map(isAlive)).toEqual([false, false]);
  expect(existsSync(join(home, "context.json"))).toBe(false);
  expect(readFileSync(join(home, "logs", "agent.log"), "utf8")).toContain("stopping");
});

test("connect() finds what up left, and the client can be disposed of", async () => {
  const home = temporaryDirectory();
  const up = await startUp(home, await freePort());
  const before = { ...process.env };
  Object.assign(process.env, { FARHAND_HOME: home });
  delete process.env["FARHAND_URL"];
  atEnd(() => void (process.env = before));
  await using farhand = await connect();
  const { stdout, exitCode } = await farhand.machine("local").commands.run("echo $((6*7))");
  expect([stdout, exitCode]).toEqual(["42\n", 0]);
  up.child.kill("SIGTERM");
  expect((await up.ended).code).toBe(0);
});

test("a second up on the same data directory says so and leaves the first alone", async () => {
  const home = temporaryDirectory();
  const first = await startUp(home, await freePort());
  const second = await cli(["up", "--port", String(await freePort())], { env: first.env });
  expect(second.code).toBe(FAULTS.conflict.exit);
  expect(second.stderr).toContain(`already up in ${home} (pid ${first.child.pid})`);
  expect((await cli(["ping", "-c", "1", "local"], { env: first.env })).code).toBe(0);
});

test("after up itself was killed nothing is left in the way of the next", async () => {
  const home = temporaryDirectory();
  const port = await freePort();
  const first = await startUp(home, port);
  const pids = [natsPid(home), agentPid(home)];
  first.child.kill("SIGKILL");
  await first.ended;
  for (const pid of pids) await until(`${pid} has gone`, () => !isAlive(pid));
  const second = await startUp(home, port);
  expect((await cli(["exec", "local", "--", "echo", "again"], { env: second.env })).stdout).toBe("again\n");
});

test("a nats-server or an agent that dies is started again", { timeout: 45_000 }, async () => {
  const home = temporaryDirectory();
  const { env, stderr } = await startUp(home, await freePort());
  for (const pid of [agentPid(home), natsPid(home)]) {
    process.kill(pid, "SIGKILL");
    await until(
      "it is back",
      async () => {
        const { code, stdout, stderr: said } = await cli(["ping", "-c", "1", "-W", "2", "local"], { env });
        if (code !== 0) throw new Error(stdout + said);
        return !isAlive(pid);
      },
      20_000,
    );
  }
  expect(stderr()).toContain("farhand-agent ended (SIGKILL); starting it again");
  expect(stderr()).toContain("nats-server ended (SIGKILL); starting it again");
});

test("a port in use is one clear line, and nothing is left running", async () => {
  const port = await freePort();
  const blocker = createServer().listen(port, "127.0.0.1");
  atEnd(() => void blocker.close());
  const home = temporaryDirectory();
  const { code, stderr } = await cli(["up", "--port", String(port)], { env: { FARHAND_HOME: home } });
  expect(code).toBe(FAULTS.conflict.exit);
  expect(stderr).toContain(`port ${port} is in use`);
  expect(stderr).toContain("--port");
  expect(existsSync(join(home, "context.json"))).toBe(false);
});

test("a data directory that cannot be written is one clear line", async () => {
  const { code, stderr } = await cli(["up"], { env: { FARHAND_HOME: "/proc/farhand" } });
  expect(code).toBe(FAULTS.denied.exit);
  expect(stderr).toContain("the data directory /proc/farhand cannot be written");
  expect(stderr).toContain("FARHAND_HOME");
});

test("a nats-server that is missing, too old or something else is one clear line", async () => {
  const home = temporaryDirectory();
  const bin = temporaryDirectory();
  mkdirSync(bin, { recursive: true });
  const script = (name: string, says: string): string => {
    const path = join(bin, name);
    writeFileSync(path, `#!/bin/sh\n${says}\n`);
    chmodSync(path, 0o755);
    return path;
  };
  const refused = async (natsServer: string): Promise<string> => {
    const { code, stderr } = await cli(["up", "--nats-server", natsServer], { env: { FARHAND_HOME: home } });
    expect(code).toBe(FAULTS.control_unavailable.exit);
    expect(stderr).toContain("install nats-server 2.11 or newer");
    return stderr;
  };
  expect(await refused(join(bin, "absent"))).toContain("there is no nats-server to run at");
  expect(await refused(script("old", "echo 'nats-server: v2.9.10'"))).toContain(
    "is version 2.9.10, and farhand needs 2.11",
  );
  expect(await refused(script("other", "exit 3"))).toContain("does not run as nats-server");
});
