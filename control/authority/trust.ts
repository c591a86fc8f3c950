import { SignedTrustList, TrustList } from "../../proto/gen/identity.js";
import { trustText } from "../../proto/identity.js";
import { subjects } from "../../proto/subjects.js";
import type { Authority } from "./authority.js";
import { accountJwt, REVOKED_UNTIL_S } from "./claims.js";
import { type RevocationRecord, untilWritten } from "./records.js";

/** Tells machines and servers what the records say is revoked. */

/** What has not ended by itself. */
const revocationsOf = async ({ records, now }: Authority): Promise<readonly RevocationRecord[]> =>
  (await records.revocations.list())
    .map(({ record }) => record)
    .filter(({ expiresMs = Infinity }) => expiresMs > now());

const listOf = (workspace: string, version: bigint, revocations: readonly RevocationRecord[]): Uint8Array => {
  const own = revocations
    .filter((one) => one.workspace === workspace)
    .toSorted((a, b) => a.revokedMs - b.revokedMs);
  const machines = own.filter(({ what }) => what === "machine");
  return TrustList.encode({
    workspace,
    version,
    revoked: Object.fromEntries(own.map(({ publicKey }) => [publicKey, BigInt(REVOKED_UNTIL_S)])),
    // The last of a name: whoever has the name now has another key, and is not meant.
    machines: Object.fromEntries(machines.map(({ name, publicKey }) => [name, publicKey])),
  }).finish();
};

/** Which version the kept list has; 0 for none. */
const versionOf = (kept: Uint8Array | undefined): bigint =>
  kept === undefined ? 0n : TrustList.decode(SignedTrustList.decode(kept).list).version;

/**
 * Signs and publishes a new list. The revision is read before the records, so that of two that do
 * this at once the one with older records is refused and begins again.
 */
export const publishTrust = async (authority: Authority, workspace: string): Promise<void> => {
  const { keys, records } = authority;
  const signed = await untilWritten(async () => {
    const { value, revision } = await records.trust.get(workspace);
    const list = listOf(workspace, versionOf(value) + 1n, await revocationsOf(authority));
    const bytes = SignedTrustList.encode({
      list,
      signature: keys.controlSigner.sign(trustText(list)),
    }).finish();
    await records.trust.put(workspace, bytes, revision);
    return bytes;
  });
  await authority.announce(subjects.trust(workspace), signed);
};

/** Every workspace that has a machine has a list, so that having none means being kept from it. */
export const ensureTrust = async (authority: Authority, workspace: string): Promise<void> => {
  const { value } = await authority.records.trust.get(workspace);
  if (value === undefined) await publishTrust(authority, workspace);
};

/** Makes the servers refuse, and cut, whoever is revoked. */
export const enforceRevocations = async (authority: Authority): Promise<void> => {
  const keysNow = async (): Promise<string[]> =>
    (await revocationsOf(authority)).map(({ publicKey }) => publicKey).toSorted();
  // Somebody may have pushed older claims over newer ones: push until nothing changed meanwhile.
  let pushed: string;
  let revoked = await keysNow();
  do {
    pushed = revoked.join();
    await authority.pushAccount(await accountJwt(authority.keys, revoked));
    revoked = await keysNow();
  } while (revoked.join() !== pushed);
};
