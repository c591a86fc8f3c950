import { FarhandError } from "../../proto/farhand-error.js";
import type { Enrolment, RenewRequest } from "../../proto/gen/identity.js";
import { renewText } from "../../proto/identity.js";
import { isSignedBy } from "../../proto/nkey.js";
import { checkId, formatMachineRef } from "../../proto/subjects.js";
import type { Authority } from "./authority.js";
import { enrolmentOf } from "./enrolment.js";
import { recordKey } from "./records.js";

/**
 * Gives a machine that is enrolled a new JWT. Its clock does not matter: what is signed says only
 * that it has its key, and the answer goes to its own inbox.
 */
export const renew = async (
  authority: Authority,
  workspace: string,
  request: RenewRequest,
): Promise<Enrolment> => {
  const ref = {
    workspace: checkId("workspace", workspace),
    machine: checkId("machine", request.machine),
  };
  const refused = (message: string, reason: string): FarhandError =>
    new FarhandError("unauthenticated", message, {
      detail: { reason },
      advice: "join again with a new token: farhand token create",
    });
  if (!isSignedBy(request.publicKey, renewText(workspace, request), request.signature))
    throw refused("the request is not signed with the machine's key", "signature");
  const { record } = await authority.records.machines.get(recordKey(ref));
  if (record === undefined || record.publicKey !== request.publicKey)
    throw refused(`the machine ${formatMachineRef(ref)} is not enrolled with this key`, "replaced");
  if (record.status !== "active")
    throw refused(`the machine ${formatMachineRef(ref)} was revoked`, "revoked");
  return enrolmentOf(authority, ref, record.publicKey);
};
