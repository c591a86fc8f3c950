import { FarhandError } from "../../proto/farhand-error.js";
import { formatMachineRef, type MachineRef } from "../../proto/subjects.js";
import type { Authority } from "./authority.js";
import { type CredentialRecord, recordKey, type RevocationRecord, untilWritten } from "./records.js";
import { enforceRevocations, publishTrust } from "./trust.js";

/**
 * Revokes a key for good. The record comes first, since everything else follows from it; then the
 * machines, so that a revoked one hears of it while it is still connected; then the servers.
 */
export const revokeKey = async (
  authority: Authority,
  revocation: Omit<RevocationRecord, "revokedMs">,
): Promise<void> => {
  const { revocations } = authority.records;
  await untilWritten(async () => {
    const { record, revision } = await revocations.get(revocation.publicKey);
    if (record !== undefined) return;
    await revocations.put(revocation.publicKey, { ...revocation, revokedMs: authority.now() }, revision);
  });
  await publishTrust(authority, revocation.workspace);
  await enforceRevocations(authority);
};

/** Doing it again is harmless, and finishes what an earlier attempt could not. */
export const revokeMachine = async (authority: Authority, ref: MachineRef, by: string): Promise<void> => {
  const key = recordKey(ref);
  const publicKey = await untilWritten(async () => {
    const { record, revision } = await authority.records.machines.get(key);
    if (record === undefined) {
      throw new FarhandError("invalid", `no machine ${formatMachineRef(ref)} has joined`, {
        advice: "check the name and the workspace",
      });
    }
    if (record.status === "active")
      await authority.records.machines.put(key, { ...record, status: "revoked" }, revision);
    return record.publicKey;
  });
  const { workspace, machine } = ref;
  await revokeKey(authority, { what: "machine", workspace, name: machine, publicKey, by });
};

/** By name within a workspace, or by public key. */
export type CredentialRef =
  { readonly workspace: string; readonly name: string } | { readonly publicKey: string };

const findCredential = async (
  { records }: Authority,
  ref: CredentialRef,
): Promise<{ record: CredentialRecord; revision: number; key: string }> => {
  const all = await records.credentials.list();
  const found = all.find(({ key, record }) =>
    "publicKey" in ref
      ? record.publicKey === ref.publicKey
      : key === recordKey({ workspace: ref.workspace, machine: ref.name }),
  );
  const held = found === undefined ? undefined : await records.credentials.get(found.key);
  if (found === undefined || held?.record === undefined) {
    const what = "publicKey" in ref ? "with that key" : `named ${ref.workspace}/${ref.name}`;
    throw new FarhandError("invalid", `there are no credentials ${what}`, {
      advice: "farhand creds list shows those that were created here",
    });
  }
  return { record: held.record, revision: held.revision, key: found.key };
};

export const revokeCredential = async (
  authority: Authority,
  ref: CredentialRef,
  by: string,
): Promise<CredentialRecord> => {
  const record = await untilWritten(async () => {
    const { record, revision, key } = await findCredential(authority, ref);
    if (record.status === "active")
      await authority.records.credentials.put(key, { ...record, status: "revoked" }, revision);
    return record;
  });
  const { workspace, name, publicKey, expiresMs } = record;
  await revokeKey(authority, { what: "credential", workspace, name, publicKey, expiresMs, by });
  return record;
};

/**
 * Finishes what a process that was killed could not, and brings servers that were away up to date:
 * whatever the records call revoked is so everywhere.
 */
export const reconcile = async (authority: Authority): Promise<void> => {
  const { machines, revocations } = authority.records;
  const revoked = new Set((await revocations.list()).map(({ key }) => key));
  for (const { record } of await machines.list()) {
    const { workspace, machine: name, publicKey, status, replaced } = record;
    const missing = [
      ...(status === "revoked" ? [publicKey] : []),
      ...(replaced === undefined ? [] : [replaced]),
    ];
    for (const key of missing.filter((one) => !revoked.has(one)))
      await revokeKey(authority, { what: "machine", workspace, name, publicKey: key, by: "farhand" });
  }
  await enforceRevocations(authority);
};
