import { FarhandError } from "../../proto/farhand-error.js";
import { createSigningKey } from "../../proto/nkey.js";
import { checkId, idProblem } from "../../proto/subjects.js";
import { formatCredentials } from "../credentials.js";
import type { Authority } from "./authority.js";
import { type ControlRole, mintControl } from "./mint.js";
import { type CredentialRecord, recordKey } from "./records.js";
import { revokeKey } from "./revoke.js";

export interface CredentialOptions {
  readonly workspace: string;
  readonly name: string;
  readonly role: ControlRole;
  /** Without, they last until they are revoked. */
  readonly expiresInMs?: number | undefined;
  /** Revokes those of this name, if there are any, instead of refusing. */
  readonly replace?: boolean;
}

export interface CreatedCredential {
  readonly publicKey: string;
  /** The creds file: a secret. */
  readonly text: string;
  readonly expiresMs: number | undefined;
}

const isGood = ({ status, expiresMs = Infinity }: CredentialRecord, nowMs: number): boolean =>
  status === "active" && expiresMs > nowMs;

export const createCredential = async (
  authority: Authority,
  options: CredentialOptions,
): Promise<CreatedCredential> => {
  const { keys, records } = authority;
  const { name, role, replace = false } = options;
  const workspace = checkId("workspace", options.workspace);
  const problem = idProblem(name);
  if (problem !== undefined)
    throw new FarhandError("invalid", `the name ${JSON.stringify(name.slice(0, 80))} ${problem}`);
  const at = recordKey({ workspace, machine: name });
  const { record: before, revision } = await records.credentials.get(at);
  const nowMs = authority.now();
  if (before !== undefined && isGood(before, nowMs) && !replace) {
    throw new FarhandError("conflict", `there are credentials named ${workspace}/${name} already`, {
      advice: `choose another name, or revoke them first: farhand revoke --creds ${name} -w ${workspace}`,
    });
  }
  const key = createSigningKey("user");
  const { publicKey } = key;
  const expiresMs = options.expiresInMs === undefined ? undefined : nowMs + options.expiresInMs;
  const record = { workspace, name, role, publicKey, status: "active", createdMs: nowMs, expiresMs } as const;
  await records.credentials.put(at, record, revision);
  if (before !== undefined && isGood(before, nowMs)) {
    const by = `replaced by ${publicKey}`;
    const { publicKey: old, expiresMs: oldExpiresMs } = before;
    await revokeKey(authority, {
      what: "credential",
      workspace,
      name,
      publicKey: old,
      expiresMs: oldExpiresMs,
      by,
    });
  }
  const jwt = mintControl(keys, { workspace, name, role, publicKey, nowMs, expiresMs });
  return { publicKey, text: formatCredentials(jwt, key.seed, keys.agentSigner.publicKey), expiresMs };
};

export interface ListedCredential {
  readonly workspace: string;
  readonly name: string;
  readonly role: ControlRole;
  readonly publicKey: string;
  readonly state: "active" | "revoked" | "expired";
  readonly createdMs: number;
  readonly expiresMs: number | undefined;
}

export const listCredentials = async ({ records, now }: Authority): Promise<ListedCredential[]> =>
  (await records.credentials.list())
    .map(({ record }) => ({
      workspace: record.workspace,
      name: record.name,
      role: record.role,
      publicKey: record.publicKey,
      state: record.status === "active" && !isGood(record, now()) ? ("expired" as const) : record.status,
      createdMs: record.createdMs,
      expiresMs: record.expiresMs,
    }))
    .toSorted((a, b) => a.createdMs - b.createdMs);
