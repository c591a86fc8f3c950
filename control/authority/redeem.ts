import { FarhandError } from "../../proto/farhand-error.js";
import type { Enrolment, RedeemRequest } from "../../proto/gen/identity.js";
import { IDENTITY, redeemText } from "../../proto/identity.js";
import { isSignedBy, publicKeyKind } from "../../proto/nkey.js";
import { checkId, formatMachineRef, type MachineRef } from "../../proto/subjects.js";
import type { Authority } from "./authority.js";
import { enrolmentOf } from "./enrolment.js";
import { type Held, type MachineRecord, recordKey, type TokenRecord, untilWritten } from "./records.js";
import { revokeKey } from "./revoke.js";
import { ensureTrust } from "./trust.js";

const refused = (message: string): FarhandError =>
  new FarhandError("unauthenticated", message, {
    advice: "create a new join token with farhand token create",
  });

const iso = (ms: number): string => new Date(ms).toISOString();

const checkUserKey = (what: string, key: string): void => {
  let kind: string | undefined;
  try {
    kind = publicKeyKind(key);
  } catch {
    kind = undefined;
  }
  if (kind !== "user") throw new FarhandError("invalid", `the ${what} is not the public key of a user`);
};

const checkSignatures = (workspace: string, request: RedeemRequest): void => {
  checkId("workspace", workspace);
  checkId("machine", request.machine);
  checkUserKey("token", request.token);
  checkUserKey("machine's key", request.publicKey);
  const text = redeemText(workspace, request);
  if (!isSignedBy(request.token, text, request.tokenSignature))
    throw refused("the request is not signed with the secret of its join token");
  if (!isSignedBy(request.publicKey, text, request.machineSignature))
    throw refused("the request is not signed with the key that it wants to enrol");
};

/** The same machine asks again, because it did not get the answer. */
const isAgain = ({ usedBy }: TokenRecord, { machine, publicKey }: RedeemRequest): boolean =>
  usedBy?.machine === machine && usedBy.publicKey === publicKey;

const usedAlready = ({ usedBy }: TokenRecord): FarhandError =>
  refused(`the join token was used already, at ${iso(usedBy?.atMs ?? 0)} by ${usedBy?.machine ?? "another"}`);

const checkToken = (
  { workspace, request, nowMs }: { workspace: string; request: RedeemRequest; nowMs: number },
  record: TokenRecord | undefined,
): TokenRecord => {
  if (record === undefined || record.workspace !== workspace)
    throw refused("the join token is not known here");
  if (record.state === "revoked") throw refused("the join token was revoked");
  if (record.state === "used" && !isAgain(record, request)) throw usedAlready(record);
  if (record.expiresMs <= nowMs)
    throw refused(`the join token expired at ${iso(record.expiresMs)} (it is ${iso(nowMs)} here)`);
  if (record.machine !== undefined && record.machine !== request.machine) {
    throw new FarhandError(
      "invalid",
      `the join token is for a machine named ${record.machine}, not ${request.machine}`,
      { advice: `join with --name ${record.machine}, or create a token for this name` },
    );
  }
  return record;
};

const checkClock = (timeMs: bigint, nowMs: number): void => {
  if (Math.abs(Number(timeMs) - nowMs) <= IDENTITY.clockMs) return;
  const machineTime = Math.abs(Number(timeMs)) < 8.64e15 ? iso(Number(timeMs)) : `${timeMs} ms`;
  throw new FarhandError(
    "invalid",
    `the machine's clock is wrong: it says ${machineTime}, and it is ${iso(nowMs)} at the control plane`,
    { advice: "set the clock of the machine (or of the control plane), and join again" },
  );
};

const isTaken = ({ record }: Held<MachineRecord>, publicKey: string): boolean =>
  record?.status === "active" && record.publicKey !== publicKey;

const nameTaken = (ref: MachineRef, record: MachineRecord | undefined): FarhandError =>
  new FarhandError(
    "conflict",
    `the name ${formatMachineRef(ref)} is taken by a machine that joined${record === undefined ? "" : ` at ${iso(record.enrolledMs)}`}`,
    { advice: "choose another name with --name, or take it over with --force, which revokes the other" },
  );

/** Exactly one of several that redeem at once gets past this. */
const consume = async (
  { records, now }: Authority,
  request: RedeemRequest,
  { record, revision }: { record: TokenRecord; revision: number },
): Promise<void> => {
  if (record.state === "used") return;
  const { machine, publicKey, token } = request;
  const usedBy = { machine, publicKey, atMs: now() };
  try {
    await records.tokens.put(token, { ...record, state: "used", usedBy }, revision);
  } catch (error) {
    const { record: after } = await records.tokens.get(token);
    if (after?.state === "used" && isAgain(after, request)) return;
    throw after?.state === "used" ? usedAlready(after) : error;
  }
};

/** Gives the token back to a machine that could not be enrolled with it. */
const release = ({ records }: Authority, request: RedeemRequest): Promise<void> =>
  untilWritten(async () => {
    const { record, revision } = await records.tokens.get(request.token);
    if (record?.state !== "used" || !isAgain(record, request)) return;
    await records.tokens.put(request.token, { ...record, state: "unused", usedBy: undefined }, revision);
  });

/** Writes the machine down, or gives the token back if its name was taken in this moment. */
const register = async (
  authority: Authority,
  request: RedeemRequest,
  { ref, current }: { ref: MachineRef; current: Held<MachineRecord> },
): Promise<MachineRecord> => {
  const { publicKey, hostname } = request;
  const { machines } = authority.records;
  const { record: before } = current;
  if (before?.status === "active" && before.publicKey === publicKey) return before;
  const record: MachineRecord = {
    ...ref,
    publicKey,
    status: "active",
    hostname: hostname.slice(0, 255),
    enrolledMs: authority.now(),
    replaced: before?.publicKey,
  };
  try {
    await machines.put(recordKey(ref), record, current.revision);
    return record;
  } catch (error) {
    if (!(error instanceof FarhandError) || error.code !== "conflict") throw error;
    const now = await machines.get(recordKey(ref));
    if (now.record?.status === "active" && now.record.publicKey === publicKey) return now.record;
    await release(authority, request);
    throw nameTaken(ref, now.record);
  }
};

/** Turns a join token into the identity of a machine, once. */
export const redeem = async (
  authority: Authority,
  workspace: string,
  request: RedeemRequest,
): Promise<Enrolment> => {
  const { records } = authority;
  const nowMs = authority.now();
  checkSignatures(workspace, request);
  const ref = { workspace, machine: request.machine };
  const held = await records.tokens.get(request.token);
  const token = checkToken({ workspace, request, nowMs }, held.record);
  checkClock(request.timeMs, nowMs);
  // A key that is revoked stays so: the servers would refuse it whatever is signed for it.
  const current = await records.machines.get(recordKey(ref));
  const wasRevoked = current.record?.status === "revoked" && current.record.publicKey === request.publicKey;
  if (wasRevoked || (await records.revocations.get(request.publicKey)).record !== undefined)
    throw refused("the machine's key was revoked");
  if (isTaken(current, request.publicKey) && !request.replace) throw nameTaken(ref, current.record);
  await consume(authority, request, { record: token, revision: held.revision });
  const { replaced } = await register(authority, request, { ref, current });
  if (replaced !== undefined) {
    const by = `replaced by ${request.publicKey}`;
    const { record: done } = await records.revocations.get(replaced);
    if (done === undefined)
      await revokeKey(authority, { what: "machine", workspace, name: ref.machine, publicKey: replaced, by });
  }
  await ensureTrust(authority, workspace);
  return enrolmentOf(authority, ref, request.publicKey);
};
