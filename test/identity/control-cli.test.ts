import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readCredentials } from "../../control/credentials.js";
import { FAULTS } from "../../proto/faults.js";
import { parseJoinToken } from "../../proto/join-token.js";
import { shared } from "../support/at-end.js";
import { cli, type CliRun } from "../support/cli.js";
import { startOperatorBus } from "../support/operator.js";
import { temporaryDirectory } from "../support/temporary.js";

const bus = shared(() => startOperatorBus());

const env = () => ({ FARHAND_HOME: bus().home, FARHAND_URL: bus().url, FARHAND_CREDS: undefined });
const run = (...args: string[]): Promise<CliRun> => cli(args, { env: env() });

describe("farhand token", () => {
  test("create prints one line to paste and nothing else, and what to do with it beside", async () => {
    const { stdout, stderr, code } = await run("token", "create", "--name", "my-laptop", "--expires", "2h");
    expect(code).toBe(0);
    expect(stdout.trimEnd().split("\n")).toHaveLength(1);
    const token = parseJoinToken(stdout);
    expect(token).toMatchObject({ workspace: "default", machine: "my-laptop", servers: [bus().url] });
    expect(Math.abs(token.expiresMs - Date.now() - 7_200_000)).toBeLessThan(60_000);
    expect(token.authority).toBe(bus().keys.controlSigner.publicKey);
    expect(stderr).toContain("farhand-agent join");
    expect(stderr).not.toContain(token.seed);
  });

  test("list shows no secret, and revoke takes the whole id only", async () => {
    const made = JSON.parse((await run("token", "create", "-w", "team", "--json")).stdout);
    const { seed, jwt } = parseJoinToken(made.token);
    const list = await run("token", "list");
    expect(list.stdout).toContain(made.id);
    for (const secret of [seed, jwt, made.token]) expect(list.stdout).not.toContain(secret);
    const prefix = await run("token", "revoke", made.id.slice(0, 20));
    expect(prefix.code).toBe(FAULTS.invalid.exit);
    expect(prefix.stderr).toContain("there is no such token");
    expect((await run("token", "revoke", made.id)).code).toBe(0);
    const lines = (await run("token", "list", "--json")).stdout.trim().split("\n");
    const rows = lines.map((line) => JSON.parse(line));
    expect(rows.find(({ id }) => id === made.id)).toMatchObject({ state: "revoked", workspace: "team" });
  });

  test.each([
    ["a time that is none", ["--expires", "soon"], "is not a time such as 30m"],
    ["a name that is none", ["--name", "a.b"], "machine name"],
    ["a workspace that is none", ["--workspace", ">"], "workspace name"],
  ])("create refuses %s", async (_what, args, says) => {
    const { code, stderr, stdout } = await run("token", "create", ...args);
    expect([code, stdout]).toEqual([FAULTS.invalid.exit, ""]);
    expect(stderr).toContain(says);
  });
});

describe("farhand creds", () => {
  test("create writes a file for its owner only, and overwrites none", async () => {
    const { stdout, code } = await run("creds", "create", "ci-backend", "--read-only", "--expires", "90d");
    const path = join(bus().home, "creds", "ci-backend.creds");
    expect([code, stdout]).toEqual([0, `${path}\n`]);
    expect([statSync(path).mode & 0o777, statSync(join(bus().home, "creds")).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
    const { certificate, agentAuthority } = readCredentials(path);
    expect(certificate).toMatchObject({ name: "ci-backend", role: "reader", workspace: "default" });
    expect(agentAuthority).toBe(bus().keys.agentSigner.publicKey);
    const again = await run("creds", "create", "ci-backend");
    expect(again.code).toBe(FAULTS.conflict.exit);
    expect(again.stderr).toContain("exists already");
    expect(readCredentials(path).certificate.jwt).toBe(certificate.jwt);
  });

  test("create leaves nothing good behind when the file cannot be written", async () => {
    const place = join(temporaryDirectory(), "file");
    writeFileSync(place, "");
    const { code, stderr } = await run("creds", "create", "lost", "-o", join(place, "x.creds"));
    expect(code).toBe(FAULTS.denied.exit);
    expect(stderr).toContain("cannot be written");
    const lines = (await run("creds", "list", "--json")).stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line)).find(({ name }) => name === "lost").state).toBe("revoked");
  });

  test("create -o - prints them, and list shows no secret", async () => {
    const { stdout } = await run("creds", "create", "piped", "-o", "-");
    expect(stdout).toContain("BEGIN USER NKEY SEED");
    expect(existsSync(join(bus().home, "creds", "piped.creds"))).toBe(false);
    const list = await run("creds", "list");
    expect(list.stdout).toContain("piped");
    expect(list.stdout).not.toMatch(/SU[A-Z0-9]{50}|eyJ/);
  });
});

describe("farhand revoke", () => {
  test("revokes a machine or credentials, and says what it did", async () => {
    await bus().enrol({ workspace: "default", machine: "box" });
    expect((await run("revoke", "box")).stdout).toBe("revoked the machine default/box\n");
    await bus().control({ workspace: "default", name: "alice" });
    const { stdout } = await run("revoke", "--creds", "alice", "--json");
    expect(JSON.parse(stdout)).toEqual({ credentials: "default/alice", status: "revoked" });
  });

  test.each([
    ["nothing", []],
    ["both", ["box", "--creds", "alice"]],
  ])("refuses %s", async (_what, args) => {
    const { code, stderr } = await run("revoke", ...args);
    expect(code).toBe(FAULTS.invalid.exit);
    expect(stderr).toContain("name either a machine or, with --creds, credentials");
  });

  test("of what does not exist is one clear sentence", async () => {
    expect((await run("revoke", "bo")).stderr).toContain("no machine default/bo has joined");
    expect((await run("revoke", "--creds", "ali")).stderr).toContain("there are no credentials named");
  });
});

test("where there is no authority these commands say where to run them", async () => {
  const home = join(temporaryDirectory(), "empty");
  mkdirSync(home);
  const { code, stderr } = await cli(["token", "list"], {
    env: { FARHAND_HOME: home, FARHAND_URL: bus().url },
  });
  expect(code).toBe(FAULTS.denied.exit);
  expect(stderr).toContain(`there is no authority at ${join(home, "authority.json")}`);
  expect(readdirSync(home)).toEqual([]);
});

test("no seed is in any file but those of the owner", async () => {
  const seeds = Object.values(bus().keys).map(({ seed }) => seed);
  const files = readdirSync(bus().home, { recursive: true, encoding: "utf8" })
    .map((name) => join(bus().home, name))
    .filter((path) => statSync(path).isFile() && !path.endsWith("authority.json"));
  for (const path of files) {
    const text = readFileSync(path, "latin1");
    expect([path, seeds.filter((seed) => text.includes(seed))]).toEqual([path, []]);
  }
});
