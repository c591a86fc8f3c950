import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeAccount, encodeOperator } from "@nats-io/jwt";
import { expect, test } from "vitest";
import { createSigningKey } from "../../proto/nkey.js";
import { AGENT_EXIT } from "../../proto/limits.js";
import { serving, startAgentProcess } from "../support/agent.js";
import { cli, startCli } from "../support/cli.js";
import { startNatsServer } from "../support/nats-server.js";
import { temporaryDirectory } from "../support/temporary.js";
import { until } from "../support/until.js";

const UNLIMITED = {
  subs: -1,
  data: -1,
  payload: -1,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
  disallow_bearer: false,
};

/** A NATS that somebody runs already, with an operator of their own, as they would set it up. */
const startForeignNats = async () => {
  const directory = temporaryDirectory();
  const [operator, system] = [createSigningKey("operator"), createSigningKey("account")];
  const files = { operator: join(directory, "operator.nk"), system: join(directory, "sys.nk") };
  writeFileSync(files.operator, `${operator.seed}\n`, { mode: 0o600 });
  writeFileSync(files.system, `${system.seed}\n`, { mode: 0o600 });
  const operatorJwt = await encodeOperator("theirs", operator.seed, { system_account: system.publicKey });
  const systemJwt = await encodeAccount(
    "SYS",
    system.publicKey,
    { limits: UNLIMITED },
    { signer: operator.seed },
  );
  const server = await startNatsServer(
    `operator: ${operatorJwt}\nsystem_account: ${system.publicKey}\n` +
      `resolver: { type: full, dir: ${JSON.stringify(join(directory, "accounts"))}, allow_delete: true, interval: "2m", timeout: "1.9s" }\n` +
      `resolver_preload: { ${system.publicKey}: ${systemJwt} }\n`,
  );
  return { server, files };
};

test(
  "a NATS with an operator of its own takes the account, and everything works on it by commands alone",
  { timeout: 60_000 },
  async () => {
    const { server, files } = await startForeignNats();
    const home = join(temporaryDirectory(), "home");
    const env = { FARHAND_HOME: home, FARHAND_URL: server.url };
    const run = (args: string[]) => cli(args, { env });
    const init = await run([
      "authority",
      "init",
      "--operator-seed-file",
      files.operator,
      "--system-seed-file",
      files.system,
    ]);
    expect([init.code, init.stdout]).toEqual([0, `${join(home, "authority.json")}\n`]);
    expect((await run(["authority", "init"])).code).not.toBe(0);
    expect((await run(["authority", "push"])).stdout).toContain("the servers know the account");
    const plane = startCli(["plane"], { env });
    await until("the plane serves", () => plane.stdout().includes("serves on"));

    const token = await run(["token", "create", "--name", "box"]);
    expect(token.stdout.trim().split("\n")).toHaveLength(1);
    const stateDir = join(home, "box");
    const joining = startAgentProcess(
      ["join", "--token-file", "-", "--state", stateDir, "--no-run"],
      {},
      token.stdout,
    );
    expect(await joining.exited).toBe(0);
    const agent = startAgentProcess(["run", "--state", stateDir, "--root", home]);
    await serving(agent);

    const creds = (await run(["creds", "create", "backend"])).stdout.trim();
    const asBackend = { ...env, FARHAND_CREDS: creds };
    expect((await cli(["exec", "box", "--", "echo", "hi"], { env: asBackend })).stdout).toBe("hi\n");
    const listed = await run(["token", "list", "--json"]);
    expect(JSON.parse(listed.stdout)).toMatchObject({ state: "used", usedBy: "box" });
    expect(listed.stdout).not.toContain("SU");

    expect((await run(["revoke", "box"])).stdout).toBe("revoked the machine default/box\n");
    expect(await agent.exited).toBe(AGENT_EXIT.revoked);
    expect((await run(["revoke", "--creds", "backend"])).code).toBe(0);
    const refused = await cli(["exec", "box", "--", "true"], { env: asBackend });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("does not accept our credentials");
    plane.child.kill("SIGTERM");
    await plane.ended;
  },
);

test("half of an operator is refused in one sentence", async () => {
  const { files } = await startForeignNats();
  const env = { FARHAND_HOME: join(temporaryDirectory(), "home") };
  const { code, stderr } = await cli(["authority", "init", "--operator-seed-file", files.operator], { env });
  expect(code).toBe(64);
  expect(stderr).toContain("both the operator and its system account");
});
