import { encodeAccount, encodeOperator, newScopedSigner } from "@nats-io/jwt";
import type { SigningKey } from "../../proto/nkey.js";
import type { AuthorityKeys } from "./keys.js";
import { type Permissions, TEMPLATES } from "./permissions.js";

/** JWTs of the operator and of its two accounts, which nats-server takes its rules from. */

/** Every limit is spelt out: one that is left out is zero, which allows nothing. */
const ACCOUNT_LIMITS = {
  subs: -1,
  data: -1,
  payload: -1,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
  disallow_bearer: false,
} as const;

const JETSTREAM_LIMITS = {
  mem_storage: -1,
  disk_storage: -1,
  streams: -1,
  consumer: -1,
  mem_max_stream_bytes: -1,
  disk_max_stream_bytes: -1,
  max_bytes_required: false,
  max_ack_pending: -1,
} as const;

const USER_LIMITS = { subs: -1, data: -1, payload: -1 } as const;

/** Until when a revoked key is revoked: for good, so that no JWT minted in the same moment survives. */
export const REVOKED_UNTIL_S = 253_402_300_799;

const scoped = (signer: SigningKey, role: string, { pub, sub, resp }: Permissions) =>
  newScopedSigner(signer.publicKey, role, {
    pub: { allow: [...pub.allow], deny: [] },
    sub: { allow: [...sub.allow], deny: [] },
    ...(resp === undefined ? {} : { resp }),
    ...USER_LIMITS,
  });

export const operatorJwt = (keys: AuthorityKeys): Promise<string> =>
  encodeOperator("farhand", keys.operator.seed, { system_account: keys.system.publicKey });

export const systemJwt = (keys: AuthorityKeys): Promise<string> =>
  encodeAccount(
    "SYS",
    keys.system.publicKey,
    { limits: { ...ACCOUNT_LIMITS } },
    { signer: keys.operator.seed },
  );

/** The account of all workspaces; `revoked` are the public keys that are no longer good. */
export const accountJwt = (keys: AuthorityKeys, revoked: readonly string[]): Promise<string> =>
  encodeAccount(
    "FARHAND",
    keys.account.publicKey,
    {
      limits: { ...ACCOUNT_LIMITS, ...JETSTREAM_LIMITS },
      signing_keys: [
        scoped(keys.agentSigner, "agent", TEMPLATES.agent),
        scoped(keys.renewSigner, "renew", TEMPLATES.renew),
        scoped(keys.joinSigner, "join", TEMPLATES.join),
        keys.controlSigner.publicKey,
        keys.planeSigner.publicKey,
      ],
      revocations: Object.fromEntries(revoked.map((publicKey) => [publicKey, REVOKED_UNTIL_S])),
    },
    { signer: keys.operator.seed },
  );

/**
 * The account before anything was revoked, for servers that know nothing of it yet. Its date is older
 * than any other's, since a server keeps the newer of what it knows and what its configuration says,
 * and an old configuration must not undo a revocation.
 */
export const firstAccountJwt = async (keys: AuthorityKeys): Promise<string> => {
  const [header = "", body = ""] = (await accountJwt(keys, [])).split(".");
  const claims: Record<string, unknown> = JSON.parse(Buffer.from(body, "base64url").toString());
  const text = `${header}.${Buffer.from(JSON.stringify({ ...claims, iat: 1 })).toString("base64url")}`;
  return `${text}.${keys.operator.sign(Buffer.from(text)).toString("base64url")}`;
};
