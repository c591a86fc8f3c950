import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, jwtAuthenticator, type NatsConnection } from "@nats-io/transport-node";
import type { Authority } from "../control/authority/authority.js";
import { createCredential } from "../control/authority/creds.js";
import { openKeys } from "../control/authority/keys.js";
import { createPlaneUser, mintAgent } from "../control/authority/mint.js";
import { operatorConfig } from "../control/authority/server-config.js";
import { createToken } from "../control/authority/tokens.js";
import { type Credentials, formatCredentials, parseCredentials } from "../control/credentials.js";
import { findNatsServer } from "../control/plane/nats-binary.js";
import { startPlane } from "../control/plane/plane.js";
import { createSigningKey } from "../proto/nkey.js";

/** A nats-server in operator mode, as `farhand up` starts it, and who is on it. */
export interface Bus {
  readonly authority: Authority;
  readonly raw: NatsConnection;
  /** A file with a user for the echo process. */
  readonly userFile: string;
  readonly credentials: Credentials;
  /** A file with a join token. */
  readonly tokenFile: string;
  /** A creds file of a machine m2 that leaves it to the bus who may reach it. */
  readonly machineCreds: string;
  close(): Promise<void>;
}

export const startBus = async (
  directory: string,
  port: number,
  start: (command: string, args: string[]) => unknown,
): Promise<Bus> => {
  const url = `nats://127.0.0.1:${port}`;
  mkdirSync(join(directory, "nats"), { recursive: true });
  const keys = openKeys(directory);
  const { path } = await findNatsServer({ home: directory, env: process.env });
  const config = join(directory, "nats.conf");
  const store = JSON.stringify(join(directory, "js"));
  writeFileSync(
    config,
    `listen: "127.0.0.1:${port}"\njetstream { store_dir: ${store} }\n${await operatorConfig(keys, directory)}`,
  );
  start(path, ["-c", config]);
  const user = createPlaneUser(keys, Date.now());
  const userFile = join(directory, "user.json");
  writeFileSync(userFile, JSON.stringify({ jwt: user.jwt, seed: user.key.seed }), { mode: 0o600 });
  const raw = await connect({
    servers: url,
    noAsyncTraces: true,
    waitOnFirstConnect: true,
    reconnectTimeWait: 20,
    authenticator: jwtAuthenticator(user.jwt, Buffer.from(user.key.seed)),
  });
  const plane = await startPlane({
    servers: [url],
    onProblem: (error) => console.error(error),
    keys,
    home: directory,
  });
  const { authority } = plane;
  const { text } = await createCredential(authority, { workspace: "bench", name: "bench", role: "operator" });
  const token = await createToken(authority, { workspace: "bench", machine: "m1", servers: [url] });
  const tokenFile = join(directory, "token");
  writeFileSync(tokenFile, token.text, { mode: 0o600 });
  const machineCreds = join(directory, "m2.creds");
  const m2 = createSigningKey("user");
  const nowMs = Date.now();
  const facts = {
    workspace: "bench",
    machine: "m2",
    publicKey: m2.publicKey,
    nowMs,
    expiresMs: nowMs + 3_600_000,
  };
  writeFileSync(machineCreds, formatCredentials(mintAgent(keys, facts), m2.seed, ""), { mode: 0o600 });
  return {
    machineCreds,
    authority,
    raw,
    userFile,
    credentials: parseCredentials(text, "bench"),
    tokenFile,
    async close() {
      await plane.close();
      await raw.close();
    },
  };
};
