import { isRefused } from "../wire/bus-user.js";
import { pushClaims } from "../wire/push-claims.js";
import { type AuthorityOptions, openAuthority, type OpenAuthority } from "./authority.js";
import { firstAccountJwt } from "./claims.js";
import { requireKeys } from "./keys.js";
import { createClaimsUser } from "./mint.js";
import { reconcile } from "./revoke.js";

/**
 * Makes servers that somebody else runs know the account. Only those that do not know it yet are told
 * of it as it was at first: from then on what they know follows from the records, with all that is
 * revoked.
 */
export const introduceAccount = async (
  options: Omit<AuthorityOptions, "keys">,
  onProblem: (error: unknown) => void,
): Promise<string> => {
  const keys = requireKeys(options.home);
  let authority: OpenAuthority;
  try {
    authority = await openAuthority(options, onProblem);
  } catch (error) {
    if (!isRefused(error)) throw error;
    await pushClaims(options, createClaimsUser(keys, Date.now()), await firstAccountJwt(keys));
    authority = await openAuthority(options, onProblem);
  }
  try {
    await reconcile(authority);
  } finally {
    await authority.close();
  }
  return keys.account.publicKey;
};
