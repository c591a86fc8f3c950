import { connect, jwtAuthenticator } from "@nats-io/transport-node";
import { mintAgent, mintControl } from "../control/authority/mint.js";
import { recordKey } from "../control/authority/records.js";
import { revokeMachine } from "../control/authority/revoke.js";
import { createSigningKey } from "../proto/nkey.js";
import { percentile } from "./measure.js";
import type { Row } from "./report.js";
import type { World } from "./world.js";

const MINTS = 10_000;
const REVOCATIONS = 100;

const atMost = (value: number, limit: number): { text: string; met: boolean } => ({
  text: `≤ ${limit} s`,
  met: value <= limit,
});

/** From the decision to revoke to the end of the machine's connection. */
const revokeOne = async ({ authority, url }: World, at: number): Promise<number> => {
  const ref = { workspace: "bench", machine: `revoked-${at}` };
  const key = createSigningKey("user");
  const nowMs = Date.now();
  const user = { ...ref, publicKey: key.publicKey, nowMs, expiresMs: nowMs + 600_000 };
  const record = {
    ...ref,
    publicKey: key.publicKey,
    status: "active",
    hostname: "bench",
    enrolledMs: nowMs,
  } as const;
  await authority.records.machines.put(recordKey(ref), record, 0);
  const jwt = mintAgent(authority.keys, user);
  const nc = await connect({
    servers: url,
    reconnect: false,
    authenticator: jwtAuthenticator(jwt, Buffer.from(key.seed)),
  });
  const startedAt = performance.now();
  const cut = nc.closed().then(() => performance.now() - startedAt);
  await revokeMachine(authority, ref, "bench");
  return cut;
};

export const benchIdentity = async (world: World): Promise<Row[]> => {
  const { keys } = world.authority;
  const { publicKey } = createSigningKey("user");
  const startedAt = performance.now();
  for (let at = 0; at < MINTS; at++) {
    mintControl(keys, { workspace: "bench", name: `n${at}`, role: "operator", publicKey, nowMs: Date.now() });
  }
  const mintS = (performance.now() - startedAt) / 1000;
  const times: number[] = [];
  for (let at = 0; at < REVOCATIONS; at++) times.push(await revokeOne(world, at));
  const p99 = percentile(times, 0.99) / 1000;
  return [
    { what: `${MINTS} credentials minted`, figure: `${mintS.toFixed(2)} s`, goal: atMost(mintS, 5) },
    {
      what: `revocation to the end of the connection, p50 of ${REVOCATIONS}`,
      figure: `${percentile(times, 0.5).toFixed(0)} ms`,
    },
    {
      what: `revocation to the end of the connection, p99 of ${REVOCATIONS}`,
      figure: `${p99.toFixed(3)} s`,
      goal: atMost(p99, 1),
    },
  ];
};
