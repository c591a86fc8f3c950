import { connect, jwtAuthenticator, type NatsConnection } from "@nats-io/transport-node";
import { join } from "node:path";
import type { Authority } from "../../control/authority/authority.js";
import { createCredential } from "../../control/authority/creds.js";
import { type AuthorityKeys, openKeys } from "../../control/authority/keys.js";
import { type ControlRole, createPlaneUser, mintAgent } from "../../control/authority/mint.js";
import { operatorConfig } from "../../control/authority/server-config.js";
import { createToken } from "../../control/authority/tokens.js";
import { type Credentials, parseCredentials } from "../../control/credentials.js";
import { type Plane, startPlane } from "../../control/plane/plane.js";
import { FarhandError } from "../../proto/farhand-error.js";
import { type Enrolment, RedeemReply, RedeemRequest } from "../../proto/gen/identity.js";
import { IDENTITY, redeemText } from "../../proto/identity.js";
import { type JoinToken, parseJoinToken } from "../../proto/join-token.js";
import { createSigningKey, type SigningKey, signingKeyFromSeed } from "../../proto/nkey.js";
import { inboxPrefix, type MachineRef, subjects } from "../../proto/subjects.js";
import { atEnd } from "./at-end.js";
import { startNatsServer, type TestServer } from "./nats-server.js";
import { temporaryDirectory } from "./temporary.js";

/** A user of the bus as the server sees it. */
export interface RawUser {
  readonly jwt: string;
  readonly key: SigningKey;
  readonly inboxPrefix: string;
}

/** A nats-server in operator mode with its authority and control plane. */
export interface OperatorBus {
  readonly server: TestServer;
  readonly url: string;
  readonly home: string;
  readonly keys: AuthorityKeys;
  readonly plane: Plane;
  readonly authority: Authority;
  /** Credentials of somebody who commands machines. */
  control(options?: {
    workspace?: string;
    name?: string;
    role?: ControlRole;
    expiresInMs?: number;
  }): Promise<Credentials>;
  /** The one line that a machine joins with. */
  token(options?: { workspace?: string; machine?: string; expiresInMs?: number }): Promise<string>;
  /** Redeems a token as the agent does. */
  enrol(ref: MachineRef, options?: { replace?: boolean }): Promise<{ key: SigningKey; enrolment: Enrolment }>;
  /** A machine's user that is not in the registry. */
  agentUser(ref: MachineRef): RawUser;
  /** May do anything in the account, but has no credential of any workspace. */
  busOwner(): RawUser;
}

let names = 0;

export const agentOf = (ref: MachineRef, key: SigningKey, jwt: string): RawUser => ({
  jwt,
  key,
  inboxPrefix: inboxPrefix.agent(ref),
});

export const controlOf = ({ certificate, key }: Credentials): RawUser => ({
  jwt: certificate.jwt,
  key,
  inboxPrefix: inboxPrefix.control(key.publicKey),
});

export const joinOf = (token: JoinToken): RawUser => {
  const key = signingKeyFromSeed(token.seed);
  return { jwt: token.jwt, key, inboxPrefix: inboxPrefix.join(key.publicKey) };
};

/** A connection without our client code; it does not come back when it is cut. */
export const connectAs = async (url: string, user: RawUser): Promise<NatsConnection> => {
  const nc = await connect({
    servers: url,
    reconnect: false,
    inboxPrefix: user.inboxPrefix,
    authenticator: jwtAuthenticator(user.jwt, Buffer.from(user.key.seed)),
  });
  atEnd(() => nc.close());
  return nc;
};

export interface RedeemFields {
  readonly token: JoinToken;
  readonly machine: string;
  readonly key: SigningKey;
  readonly replace?: boolean;
  readonly timeMs?: number;
}

/** A request to redeem, as the agent signs it. */
export const redeemBytes = ({
  token,
  machine,
  key,
  replace = false,
  timeMs = Date.now(),
}: RedeemFields): Uint8Array => {
  const tokenKey = signingKeyFromSeed(token.seed);
  const facts = {
    machine,
    publicKey: key.publicKey,
    timeMs: BigInt(timeMs),
    token: tokenKey.publicKey,
    replace,
  };
  const text = redeemText(token.workspace, facts);
  return RedeemRequest.encode({
    ...facts,
    hostname: "test",
    tokenSignature: tokenKey.sign(text),
    machineSignature: key.sign(text),
  }).finish();
};

/** The enrolment in a reply; throws the refusal. */
export const readRedeemReply = (data: Uint8Array): Enrolment => {
  const { outcome } = RedeemReply.decode(data);
  if (outcome === undefined) throw new Error("an empty reply");
  if (outcome.$case === "error")
    throw FarhandError.fromAgentError(outcome.value, { machine: "", requestId: "" });
  return outcome.value;
};

/** Redeems over a connection of the token's own user. */
export const redeemOver = async (nc: NatsConnection, fields: RedeemFields): Promise<Enrolment> =>
  readRedeemReply(
    (await nc.request(subjects.redeem(fields.token.workspace), redeemBytes(fields), { timeout: 5_000 })).data,
  );

export const startOperatorBus = async (
  options: { agentJwtMs?: number; home?: string } = {},
): Promise<OperatorBus> => {
  const home = options.home ?? temporaryDirectory();
  const keys = openKeys(home);
  const server = await startNatsServer(await operatorConfig(keys, home));
  const { url } = server;
  const plane = await startPlane({
    servers: [url],
    onProblem: () => undefined,
    keys,
    home,
    agentJwtMs: options.agentJwtMs,
  });
  atEnd(() => plane.close());
  const { authority } = plane;
  const token: OperatorBus["token"] = async ({ workspace = "w1", machine, expiresInMs } = {}) =>
    (await createToken(authority, { workspace, machine, expiresInMs, servers: [url] })).text;
  return {
    server,
    url,
    home,
    keys,
    plane,
    authority,
    token,
    async control({ workspace = "w1", name = `test-${++names}`, role = "operator", expiresInMs } = {}) {
      const { text } = await createCredential(authority, { workspace, name, role, expiresInMs });
      return parseCredentials(text, join(home, `${name}.creds`));
    },
    async enrol({ workspace, machine }, { replace = false } = {}) {
      const parsed = parseJoinToken(await token({ workspace, machine }));
      const key = createSigningKey("user");
      const nc = await connectAs(url, joinOf(parsed));
      try {
        return { key, enrolment: await redeemOver(nc, { token: parsed, machine, key, replace }) };
      } finally {
        await nc.close();
      }
    },
    agentUser(ref) {
      const key = createSigningKey("user");
      const nowMs = Date.now();
      const user = { ...ref, publicKey: key.publicKey, nowMs, expiresMs: nowMs + IDENTITY.agentJwtMs };
      return agentOf(ref, key, mintAgent(keys, user));
    },
    busOwner: () => createPlaneUser(keys, Date.now()),
  };
};
