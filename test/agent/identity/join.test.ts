import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createToken, revokeToken } from "../../../control/authority/tokens.js";
import { FAULTS } from "../../../proto/faults.js";
import { formatJoinToken, parseJoinToken } from "../../../proto/join-token.js";
import { AGENT_EXIT } from "../../../proto/limits.js";
import { signingKeyFromSeed } from "../../../proto/nkey.js";
import { type AgentProcess, serving } from "../../support/agent.js";
import { shared } from "../../support/at-end.js";
import { faultOf } from "../../support/fails.js";
import { machineFor } from "../../support/joined.js";
import { freePort } from "../../support/nats-server.js";
import { agentOf, connectAs, startOperatorBus } from "../../support/operator.js";
import { newPlace, type Place, processesThatShow } from "./joined.js";
import { startRecorder } from "./recorder.js";

const bus = shared(() => startOperatorBus());

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

const identityFile = ({ stateDir }: Place): string => join(stateDir, "identity.json");

/** Joins with the token in a file. */
const joinWith = (place: Place, token: string, args: readonly string[] = []): AgentProcess => {
  const file = `${place.root}.token`;
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  return place.join(["--token-file", file, ...args]);
};

/** A part of the token that is in no other. */
const secretOf = (token: string): string => token.slice(-60);

describe("a machine joins with one string and serves", () => {
  test("which it reads from a file, and its files are its owner's alone", async () => {
    const place = newPlace();
    const token = await bus().token({ machine: "from-file" });
    const agent = joinWith(place, token);
    await serving(agent);
    expect(agent.stderr()).toBe("farhand-agent: joined as w1/from-file\n");
    const machine = machineFor(bus(), await bus().control(), "from-file");
    expect((await machine.commands.run("pwd")).stdout).toBe(`${place.root}\n`);
    expect(place.identity()).toMatchObject({
      workspace: "w1",
      machine: "from-file",
      authority: bus().keys.controlSigner.publicKey,
    });
    expect(processesThatShow(secretOf(token))).toEqual([]);
    expect(modeOf(place.stateDir)).toBe("700");
    expect(modeOf(identityFile(place))).toBe("600");
    expect(readdirSync(place.stateDir).filter((file) => file.endsWith(".tmp"))).toEqual([]);
  });

  test("which it reads from standard input", async () => {
    const place = newPlace();
    await serving(place.join(["--name", "from-stdin", "--token-file", "-"], await bus().token()));
    const machine = machineFor(bus(), await bus().control(), "from-stdin");
    expect((await machine.commands.run("pwd")).stdout).toBe(`${place.root}\n`);
  });

  test("which, given as an argument, is in no command line or environment while it serves", async () => {
    const place = newPlace();
    const token = await bus().token({ machine: "argued" });
    const agent = place.join([token]);
    await serving(agent);
    const machine = machineFor(bus(), await bus().control(), "argued");
    const seenInside = await machine.commands.run(
      "cat /proc/self/environ /proc/$PPID/environ /proc/$PPID/cmdline",
    );
    expect(seenInside.stdout).toContain("farhand-agent");
    expect(seenInside.stdout).not.toContain(secretOf(token));
    expect(processesThatShow(secretOf(token))).toEqual([]);
    expect(processesThatShow("farhand-agent")).toContain(`/proc/${agent.pid}/cmdline`);
    expect(agent.stderr()).toContain("--token-file");
    expect(JSON.stringify(agent.log) + agent.stderr()).not.toContain(secretOf(token));
  });
});

test("of the machine's key only the public half crosses the bus", async () => {
  const owner = await connectAs(bus().url, bus().busOwner());
  const seen: string[] = [];
  owner.subscribe(">", {
    callback: (_error, { subject, data, headers }) =>
      void seen.push(
        `${subject}\n${Buffer.from(data).toString("latin1")}\n${JSON.stringify([...(headers ?? [])])}`,
      ),
  });
  await owner.flush();
  const place = newPlace();
  await serving(joinWith(place, await bus().token(), ["--name", "watched"]));
  await machineFor(bus(), await bus().control(), "watched").ping();
  await owner.flush();
  const { seed } = place.identity();
  const traffic = seen.join("\n");
  expect(traffic).toContain("control.w1.redeem");
  expect(traffic).toContain(signingKeyFromSeed(seed).publicKey);
  // Neither whole nor without its ends, which hold its kind and checksum.
  expect(traffic).not.toContain(seed.slice(4, -4));
});

test("a machine sends its seed nowhere, not even where nobody on the bus could see it", async () => {
  const { url, recorded } = await startRecorder(bus().server.port);
  const { text } = await createToken(bus().authority, { workspace: "w1", servers: [url] });
  const place = newPlace();
  await serving(joinWith(place, text, ["--name", "recorded"]));
  const { seed } = place.identity();
  const traffic = recorded().toString("latin1");
  expect(traffic).toContain(signingKeyFromSeed(seed).publicKey);
  expect(traffic).not.toContain(seed.slice(4, -4));
});

test("an identity that others may read is refused", async () => {
  const place = newPlace();
  expect(await joinWith(place, await bus().token(), ["--name", "open", "--no-run"]).exited).toBe(0);
  chmodSync(identityFile(place), 0o644);
  const agent = place.run();
  expect(await agent.exited).toBe(FAULTS.denied.exit);
  expect(agent.stderr()).toMatch(
    /^farhand-agent: \S+identity\.json can be read by others \(mode 644\)\n .*chmod 600/,
  );
  chmodSync(identityFile(place), 0o600);
  await serving(place.run());
});

test("without an identity the agent does not run, and says how to join", async () => {
  const agent = newPlace().run();
  expect(await agent.exited).toBe(AGENT_EXIT.notJoined);
  expect(agent.stderr()).toMatch(/^farhand-agent: .*has not joined a workspace yet.*\n .*farhand-agent join/);
});

test("who the machine is cannot be changed on the command line", async () => {
  const place = newPlace();
  expect(await joinWith(place, await bus().token(), ["--name", "fixed", "--no-run"]).exited).toBe(0);
  const agent = place.run(["--machine", "other", "--server", "nats://elsewhere:4222"]);
  expect(await agent.exited).toBe(FAULTS.invalid.exit);
  expect(agent.stderr()).toContain("joined as w1/fixed");
  expect(agent.stderr()).toContain("which servers, machine cannot change");
});

test("a caller of another workspace cannot command a machine that joined", async () => {
  const place = newPlace();
  await serving(joinWith(place, await bus().token(), ["--name", "ours"]));
  const stranger = machineFor(bus(), await bus().control({ workspace: "w2" }), "w1/ours");
  expect((await faultOf(stranger.files.write("crossed", "x", { timeoutMs: 500 }))).ran).not.toBe("yes");
  expect(existsSync(join(place.root, "crossed"))).toBe(false);
});

describe("a machine that has joined already", () => {
  test("joins again with --force only, which says what it replaces and inherits nothing", async () => {
    const place = newPlace();
    const first = joinWith(place, await bus().token(), ["--name", "again"]);
    await serving(first);
    const before = place.identity();
    const credentials = await bus().control();
    const machine = machineFor(bus(), credentials, "again");
    await machine.under({ scope: "job", epoch: 9n }).files.write("a", "x");
    const ran = await machine.commands.run("date +%N", { requestId: "same" });
    await first.kill("SIGTERM");

    const token = await bus().token({ machine: "again" });
    const refused = joinWith(place, token);
    expect(await refused.exited).toBe(FAULTS.conflict.exit);
    const joined = `w1/again (joined at ${new Date(before.joinedMs).toISOString()})`;
    expect(refused.stderr()).toContain(`joined already, as ${joined}`);
    expect(refused.stderr()).toContain("--force");
    expect(place.identity()).toEqual(before);

    const forced = joinWith(place, token, ["--force"]);
    await serving(forced);
    expect(forced.stderr()).toContain(`replacing ${joined}`);
    const after = machineFor(bus(), credentials, "again");
    expect((await after.commands.run("date +%N", { requestId: "same" })).stdout).not.toBe(ran.stdout);
    await after.under({ scope: "job", epoch: 1n }).files.write("a", "y");
    expect(readFileSync(join(place.root, "a"), "utf8")).toBe("y");

    const oldKey = signingKeyFromSeed(before.seed);
    const newKey = signingKeyFromSeed(place.identity().seed);
    const { revocations } = bus().authority.records;
    expect((await revocations.get(oldKey.publicKey)).record).toMatchObject({ name: "again" });
    expect((await revocations.get(newKey.publicKey)).record).toBeUndefined();
    const oldUser = agentOf(before, oldKey, before.jwt);
    await expect(connectAs(bus().url, oldUser)).rejects.toThrow(/[Aa]uthoriz/);
  });

  test("keeps its identity when a join with --force fails", async () => {
    const place = newPlace();
    expect(await joinWith(place, await bus().token(), ["--name", "kept", "--no-run"]).exited).toBe(0);
    const before = place.identity();
    const { id, text } = await createToken(bus().authority, { workspace: "w1", servers: [bus().url] });
    await revokeToken(bus().authority, id);
    const forced = joinWith(place, text, ["--name", "kept", "--force"]);
    expect(await forced.exited).toBe(FAULTS.unauthenticated.exit);
    expect(place.identity()).toEqual(before);
    await serving(place.run());
  });

  test("is not joined again under its feet while it serves", async () => {
    const place = newPlace();
    const agent = joinWith(place, await bus().token(), ["--name", "busy"]);
    await serving(agent);
    const before = place.identity();
    const token = await bus().token({ machine: "busy" });
    const forced = joinWith(place, token, ["--force"]);
    expect(await forced.exited).toBe(AGENT_EXIT.alreadyRunning);
    expect(forced.stderr()).toContain(`pid ${agent.pid}`);
    expect(place.identity()).toEqual(before);
    expect(await machineFor(bus(), await bus().control(), "busy").ping()).toBeGreaterThan(0);
  });
});

/** The token with one character in its middle changed. */
const changed = (token: string): string => {
  const at = Math.floor(token.length / 2);
  return token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1);
};

const revoked = async (): Promise<string> => {
  const { id, text } = await createToken(bus().authority, { workspace: "w1", servers: [bus().url] });
  await revokeToken(bus().authority, id);
  return text;
};

const used = async (): Promise<string> => {
  const token = await bus().token();
  await joinWith(newPlace(), token, ["--no-run", "--name", "first"]).exited;
  return token;
};

const withoutServer = async (): Promise<string> => {
  const token = parseJoinToken(await bus().token());
  return formatJoinToken({ ...token, servers: [`nats://127.0.0.1:${await freePort()}`] });
};

describe("a token is refused in one sentence, and nothing half-enrolled remains, when it", () => {
  test.each<[string, () => Promise<string> | string, RegExp]>([
    ["is cut short", async () => (await bus().token()).slice(0, -30), /join token is (cut short|damaged)/],
    ["has one changed byte", async () => changed(await bus().token()), /join token is damaged/],
    ["is something else", () => "hello", /join token is not one of farhand/],
    ["is empty", () => "", /join token is not one of farhand/],
    ["has expired", () => bus().token({ expiresInMs: 1 }), /expired at 20.*Z \(it is 20.*Z here\)/],
    [
      "expired so long ago that the bus refuses it",
      () => bus().token({ expiresInMs: -3_600_000 }),
      /expired at 20.*Z \(by the clock of this machine it is 20.*Z\)/,
    ],
    ["was revoked", revoked, /join token was revoked/],
    ["was used", used, /join token was used already, at 20.*Z by first/],
    [
      "is for another name",
      () => bus().token({ machine: "other" }),
      /join token is for the machine other, not for late/,
    ],
    ["names no server that is there", withoutServer, /no server can be reached at nats:\/\/127\.0\.0\.1:\d+/],
  ])("%s", async (_what, make, says) => {
    const place = newPlace();
    const agent = joinWith(place, await make(), ["--name", "late"]);
    expect(await agent.exited).not.toBe(AGENT_EXIT.ok);
    const [sentence = "", advice = "", ...rest] = agent.stderr().trimEnd().split("\n");
    expect(sentence).toMatch(/^farhand-agent: /);
    expect(sentence).toMatch(says);
    expect(advice).toMatch(/^ {2}\S/);
    expect(rest).toEqual([]);
    expect(existsSync(identityFile(place))).toBe(false);
    expect((await bus().authority.records.machines.get("w1.late")).record).toBeUndefined();
  });
});
