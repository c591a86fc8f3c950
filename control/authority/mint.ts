import { randomUUID } from "node:crypto";
import { createSigningKey, type SigningKey } from "../../proto/nkey.js";
import { checkId } from "../../proto/subjects.js";
import type { BusUser } from "../wire/bus-user.js";
import type { AuthorityKeys } from "./keys.js";
import { controlPermissions, EVERYTHING, type Permissions } from "./permissions.js";

export type ControlRole = "operator" | "reader";

interface UserClaims {
  readonly name: string;
  readonly publicKey: string;
  readonly signer: SigningKey;
  /** Absent when the account's own key signs. */
  readonly account?: string | undefined;
  readonly tags?: readonly string[];
  /** Absent for a scoped signer, whose template rules. */
  readonly permissions?: Permissions;
  readonly nowMs: number;
  /** Absent if it does not expire. */
  readonly expiresMs?: number | undefined;
}

const HEADER = Buffer.from(JSON.stringify({ typ: "JWT", alg: "ed25519-nkey" })).toString("base64url");
const UNLIMITED = { subs: -1, data: -1, payload: -1 } as const;

const seconds = (ms: number): number => Math.floor(ms / 1000);

/** Signed with node:crypto: the NATS library's own signing would block for 30 ms. */
const mint = (user: UserClaims): string => {
  const claims = {
    jti: randomUUID(),
    iat: seconds(user.nowMs),
    ...(user.expiresMs === undefined ? {} : { exp: seconds(user.expiresMs) }),
    iss: user.signer.publicKey,
    sub: user.publicKey,
    name: user.name,
    nats: {
      ...(user.permissions === undefined ? {} : { ...user.permissions, ...UNLIMITED }),
      ...(user.account === undefined ? {} : { issuer_account: user.account }),
      tags: user.tags ?? [],
      type: "user",
      version: 2,
    },
  };
  const text = `${HEADER}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
  return `${text}.${user.signer.sign(Buffer.from(text)).toString("base64url")}`;
};

export interface MachineUser {
  readonly workspace: string;
  readonly machine: string;
  readonly publicKey: string;
  readonly nowMs: number;
}

const machineClaims = (keys: AuthorityKeys, { workspace, machine, publicKey, nowMs }: MachineUser) => ({
  name: checkId("machine", machine),
  publicKey,
  account: keys.account.publicKey,
  tags: [`ws:${checkId("workspace", workspace)}`, "role:agent"],
  nowMs,
});

export const mintAgent = (keys: AuthorityKeys, user: MachineUser & { expiresMs: number }): string =>
  mint({ ...machineClaims(keys, user), signer: keys.agentSigner, expiresMs: user.expiresMs });

/** Does not expire, so that a machine that was off for long comes back by itself. */
export const mintRenewal = (keys: AuthorityKeys, user: MachineUser): string =>
  mint({ ...machineClaims(keys, user), signer: keys.renewSigner });

export const mintJoin = (
  keys: AuthorityKeys,
  user: { workspace: string; publicKey: string; nowMs: number; expiresMs: number },
): string =>
  mint({
    name: user.publicKey,
    publicKey: user.publicKey,
    signer: keys.joinSigner,
    account: keys.account.publicKey,
    tags: [`ws:${checkId("workspace", user.workspace)}`],
    nowMs: user.nowMs,
    expiresMs: user.expiresMs,
  });

export const mintControl = (
  keys: AuthorityKeys,
  user: {
    workspace: string;
    name: string;
    role: ControlRole;
    publicKey: string;
    nowMs: number;
    expiresMs?: number | undefined;
  },
): string =>
  mint({
    name: user.name,
    publicKey: user.publicKey,
    signer: keys.controlSigner,
    account: keys.account.publicKey,
    tags: [`ws:${checkId("workspace", user.workspace)}`, `role:${user.role}`],
    permissions: controlPermissions(user.workspace, user.publicKey),
    nowMs: user.nowMs,
    expiresMs: user.expiresMs,
  });

/** The control plane's own user; its key lives as long as the process, and in no file. */
export const createPlaneUser = (keys: AuthorityKeys, nowMs: number): BusUser => {
  const key = createSigningKey("user");
  const jwt = mint({
    name: "farhand-control",
    publicKey: key.publicKey,
    signer: keys.planeSigner,
    account: keys.account.publicKey,
    permissions: EVERYTHING,
    nowMs,
  });
  return { jwt, key, inboxPrefix: `_INBOX_plane.${key.publicKey}` };
};

/** May do nothing but push the account's claims; short-lived, since each push makes its own. */
export const createClaimsUser = (keys: AuthorityKeys, nowMs: number): BusUser => {
  const key = createSigningKey("user");
  const inboxPrefix = `_INBOX_claims.${key.publicKey}`;
  const jwt = mint({
    name: "farhand-claims",
    publicKey: key.publicKey,
    signer: keys.system,
    permissions: { pub: { allow: ["$SYS.REQ.CLAIMS.UPDATE"] }, sub: { allow: [`${inboxPrefix}.>`] } },
    nowMs,
    expiresMs: nowMs + 3_600_000,
  });
  return { jwt, key, inboxPrefix };
};
