import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FAULTS } from "../../proto/faults.js";
import { startPair } from "../support/agent.js";
import { shared } from "../support/at-end.js";
import { cli, startCli } from "../support/cli.js";
import { isAlive } from "../support/processes.js";
import { until } from "../support/until.js";

const pair = shared(startPair);
const env = (): NodeJS.ProcessEnv => ({ FARHAND_URL: pair().server.url, FARHAND_WORKSPACE: "w1" });
const run = (args: string[], stdin?: string | Uint8Array) =>
  cli(args, { env: env(), ...(stdin === undefined ? {} : { stdin }) });

describe("exec", () => {
  test("output, error output and exit code pass through", async () => {
    const { stdout, stderr, code } = await run([
      "exec",
      "m1",
      "--",
      "sh",
      "-c",
      "echo out; echo err >&2; exit 7",
    ]);
    expect([stdout, stderr, code]).toEqual(["out\n", "err\n", 7]);
  });

  test("options of the command itself are not ours", async () => {
    expect((await run(["exec", "m1", "printf", "%s", "--json"])).stdout).toBe("--json");
  });

  test("a signal is 128 and its number, the time limit is 124", async () => {
    expect((await run(["exec", "m1", "--", "sh", "-c", "kill -KILL $$"])).code).toBe(137);
    const late = await run(["exec", "--timeout", "0.2", "m1", "--", "sleep", "9"]);
    expect(late.code).toBe(124);
    expect(late.stderr).toContain("ended after 0.2 s");
  });

  test("standard input, environment, directory and shell lines reach the command", async () => {
    const { root } = pair();
    mkdirSync(join(root, "sub"), { recursive: true });
    const args = [
      "exec",
      "-i",
      "-s",
      "-C",
      "sub",
      "-e",
      "A=b c",
      "-e",
      "D=d",
      "m1",
      'cat; echo " $A $D $(pwd)"',
    ];
    expect((await run(args, "in")).stdout).toBe(`in b c d ${root}/sub\n`);
  });

  test("Ctrl-C ends the command on the machine", async () => {
    const { root } = pair();
    const running = startCli(["exec", "m1", "--", "sh", "-c", "echo $$ > ctrl-c.pid; exec sleep 60"], {
      env: env(),
    });
    const pid = await until(
      "the command has begun",
      () => Number(readFileSync(join(root, "ctrl-c.pid"), "utf8")) || undefined,
    );
    running.child.kill("SIGINT");
    expect((await running.ended).code).toBe(130);
    await until("the command has gone", () => !isAlive(pid));
  });

  test("--json tells all of it", async () => {
    const { stdout } = await run(["exec", "--json", "m1", "--", "printf", "\\377"]);
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: 0, reason: "exited", stdoutBase64: "/w==" });
  });
});

describe("files", () => {
  test("write, cat, stat, ls, mv, chmod, mkdir and rm do what they say", async () => {
    const { root } = pair();
    const bytes = Buffer.from([0, 255, 10, 13]);
    const written = await run(["write", "--json", "-p", "m1:box/data"], bytes);
    const { sha256 } = JSON.parse(written.stdout);
    expect(readFileSync(join(root, "box/data")).equals(bytes)).toBe(true);
    expect((await run(["write", "--if-match", "0".repeat(64), "m1:box/data"], "x")).code).toBe(
      FAULTS.conflict.exit,
    );
    expect((await run(["write", "--if-match", sha256, "m1:box/data"], "new")).code).toBe(0);
    expect((await run(["write", "-a", "m1:box/data"], "er")).code).toBe(0);
    expect((await run(["cat", "m1:box/data"])).stdout).toBe("newer");
    await run(["mkdir", "-p", "m1:box/a/b"]);
    await run(["mv", "m1:box/data", "m1:box/a/moved"]);
    await run(["chmod", "600", "m1:box/a/moved"]);
    expect((await run(["ls", "m1:box/a"])).stdout).toMatch(/drwx.*b\/\n-rw-------.* 5 .*moved\n/);
    const stat = JSON.parse((await run(["stat", "--digest", "--json", "m1:box/a/moved"])).stdout);
    expect(stat).toMatchObject({ kind: "file", size: 5, mode: 0o600 });
    expect((await run(["rm", "m1:box"])).code).toBe(FAULTS.conflict.exit);
    expect((await run(["rm", "-r", "m1:box"])).code).toBe(0);
    expect((await run(["rm", "-f", "m1:box"])).code).toBe(0);
  });

  test("control characters in a file name do not reach the terminal", async () => {
    const { root } = pair();
    mkdirSync(join(root, "evil"), { recursive: true });
    writeFileSync(join(root, "evil", "\u001b[31mred\nline\u202e"), "");
    const { stdout } = await run(["ls", "m1:evil"]);
    for (const char of ["\u001b", "\u202e"]) expect(stdout).not.toContain(char);
    expect(stdout.trimEnd().split("\n")).toHaveLength(1);
    expect(stdout).toContain("\\u001b[31mred\\u000aline");
  });

  test("a directory larger than one page is listed whole and in order", async () => {
    const { root } = pair();
    mkdirSync(join(root, "many"), { recursive: true });
    for (let at = 0; at < 2_500; at++) writeFileSync(join(root, "many", String(at)), "");
    const { stdout } = await run(["ls", "--json", "m1:many"]);
    const names = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).name);
    expect(names).toEqual(Array.from({ length: 2_500 }, (_, at) => String(at)).toSorted());
  });

  test("a reader that has seen enough ends cat without an error", async () => {
    const { root } = pair();
    writeFileSync(join(root, "long"), "line\n".repeat(500_000));
    const reading = startCli(["cat", "m1:long"], { env: env() });
    reading.child.stdout?.once("data", () => reading.child.stdout?.destroy());
    const { code, stderr } = await reading.ended;
    expect([code, stderr]).toEqual([0, ""]);
  });
});

describe("ping and describe", () => {
  test("ping counts round trips like ping(8)", async () => {
    const { stdout, code } = await run(["ping", "-c", "3", "-i", "0.01", "m1"]);
    expect(code).toBe(0);
    expect(stdout.match(/answer from w1\/m1: seq=\d time=[\d.]+ ms/g)).toHaveLength(3);
    expect(stdout).toMatch(/3 sent, 3 answered, 0% without answer\nround trip min\/avg\/max\/mdev = /);
  });

  test("ping until Ctrl-C prints its summary", async () => {
    const pinging = startCli(["ping", "-i", "0.05", "m1"], { env: env() });
    await until("two answers", () => pinging.stdout().includes("seq=2"));
    pinging.child.kill("SIGINT");
    const { stdout, code } = await pinging.ended;
    expect(code).toBe(0);
    expect(stdout).toContain("ping statistics");
  });

  test("a machine that is not there is offline, in words, in JSON and in the exit code", async () => {
    const words = await run(["ping", "-c", "1", "elsewhere"]);
    expect(words.code).toBe(FAULTS.agent_offline.exit);
    expect(words.stdout).toContain("agent_offline: seq=1 w1/elsewhere is offline");
    const exec = await run(["exec", "elsewhere", "--", "true"]);
    expect([exec.code, exec.stdout]).toEqual([FAULTS.agent_offline.exit, ""]);
    expect(exec.stderr).toContain("start farhand-agent on the machine");
    const json = await run(["exec", "--json", "elsewhere", "--", "true"]);
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: { code: "agent_offline", ran: "no", retryable: true },
    });
  });

  test("describe names every capability", async () => {
    const about = JSON.parse((await run(["describe", "--json", "m1"])).stdout);
    expect(about).toMatchObject({ workspace: "w1", machine: "m1", root: pair().root });
    expect(Object.keys(about.capabilities)).toEqual(
      expect.arrayContaining(["commands", "files", "terminals", "desktop_view", "ports"]),
    );
    for (const { available, reason } of Object.values<{ available: boolean; reason: string | null }>(
      about.capabilities,
    )) {
      expect(available).toBe(reason === null);
    }
  });
});

describe("bad input", () => {
  test.each([
    [["exec", "m1"], /missing required argument/],
    [["nonsense"], /unknown command/],
    [["ls", "m1"], /names no path/],
    [["ping", "-c", "x", "m1"], /--count: "x" is not a number/],
    [["exec", "-t", "0", "m1", "true"], /timeoutMs/],
    [["chmod", "999", "m1:x"], /not an octal mode/],
    [["exec", "-e", "=x", "m1", "true"], /NAME=value/],
    [["ping", "Bad.Name"], /machine name "Bad.Name" must be/],
  ])("%j is refused with 64 and a sentence", async (args, says) => {
    const { code, stderr } = await run(args);
    expect(code).toBe(FAULTS.invalid.exit);
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("without a context the command says how to get one", async () => {
    const { code, stderr } = await cli(["ping", "m1"], {
      env: { FARHAND_HOME: "/nonexistent", FARHAND_URL: undefined },
    });
    expect(code).toBe(FAULTS.control_unavailable.exit);
    expect(stderr).toContain("run farhand up");
  });

  test("every command has help with its options", async () => {
    for (const name of [
      "up",
      "ping",
      "exec",
      "ls",
      "cat",
      "write",
      "stat",
      "mkdir",
      "mv",
      "rm",
      "chmod",
      "describe",
    ]) {
      const { code, stdout } = await cli([name, "--help"]);
      expect(code).toBe(0);
      expect(stdout).toContain(`Usage: farhand ${name}`);
    }
  });
});
