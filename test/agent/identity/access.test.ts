import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { formatCredentials } from "../../../control/credentials.js";
import { FAULTS } from "../../../proto/faults.js";
import { formatJoinToken, parseJoinToken } from "../../../proto/join-token.js";
import { serving } from "../../support/agent.js";
import { shared } from "../../support/at-end.js";
import { connectAs, startOperatorBus } from "../../support/operator.js";
import { ask, rawRequest } from "../../support/raw.js";
import { newPlace } from "./joined.js";

const bus = shared(() => startOperatorBus());

const busMode = (machine: string, creds: string): string[] => {
  const where = ["--auth", "bus", "--server", bus().url, "--workspace", "w1", "--machine", machine];
  return [...where, "--creds", creds];
};

test("with --auth bus a creds file lets the agent in, and the bus alone decides who may ask", async () => {
  const place = newPlace();
  const creds = join(place.root, "agent.creds");
  const { jwt, key } = bus().busOwner();
  writeFileSync(creds, formatCredentials(jwt, key.seed, "-"), { mode: 0o600 });
  await serving(place.run(busMode("plain", creds)));
  const nc = await connectAs(bus().url, bus().busOwner());
  const answer = await ask(nc, "agent.w1.plain.rpc", rawRequest({ op: { $case: "ping", value: {} } }));
  expect(answer.result?.$case).toBe("ping");
  expect(existsSync(join(place.stateDir, "identity.json"))).toBe(false);
});

test("a creds file that is missing, or that others may read, is refused", async () => {
  const place = newPlace();
  const creds = join(place.root, "agent.creds");
  const missing = place.run(busMode("plain", creds));
  expect(await missing.exited).toBe(FAULTS.invalid.exit);
  expect(missing.stderr()).toContain(`there is no creds file ${creds}`);
  writeFileSync(creds, "x");
  chmodSync(creds, 0o644);
  const readable = place.run(busMode("plain", creds));
  expect(await readable.exited).toBe(FAULTS.denied.exit);
  expect(readable.stderr()).toContain("can be read by others (mode 644)");
});

const CA = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";

test.each([
  ["by the certificate in its token", () => ({ ca: CA })],
  ["by the server's address", () => ({ servers: [bus().url.replace("nats:", "tls:")] })],
])("a machine that was told to use TLS %s does not go on without it", async (_, fields) => {
  const place = newPlace();
  const token = parseJoinToken(await bus().token({ machine: "careful" }));
  const agent = place.join(["--token-file", "-"], formatJoinToken({ ...token, ...fields() }));
  expect(await agent.exited).toBe(FAULTS.control_unavailable.exit);
  expect(agent.stderr()).toContain("server does not support 'tls'");
  expect(existsSync(join(place.stateDir, "identity.json"))).toBe(false);
});
