import { IDENTITY } from "../../proto/identity.js";
import type { BusPlace } from "../wire/bus-user.js";
import { openPlaneLink, type PlaneLink } from "../wire/plane-link.js";
import { pushClaims } from "../wire/push-claims.js";
import { type AuthorityKeys, requireKeys } from "./keys.js";
import { createClaimsUser, createPlaneUser } from "./mint.js";
import { openRecords, type Records } from "./records.js";
import { keepAccountJwt } from "./server-config.js";

/** Who issues and revokes identities: the keys, the records, and a way to tell the bus. */
export interface Authority {
  readonly keys: AuthorityKeys;
  readonly records: Records;
  readonly agentJwtMs: number;
  now(): number;
  /** Tells machines that listen; resolves when the server has it. */
  announce(subject: string, data: Uint8Array): Promise<void>;
  /** Makes the account's new claims the ones that the servers go by, now and after a restart. */
  pushAccount(jwt: string): Promise<void>;
}

export interface AuthorityOptions extends BusPlace {
  readonly keys: AuthorityKeys;
  /** The data directory, which the next server starts from. */
  readonly home: string;
  readonly replicas?: number | undefined;
  readonly agentJwtMs?: number | undefined;
  readonly now?: () => number;
}

export const createAuthority = async (link: PlaneLink, options: AuthorityOptions): Promise<Authority> => {
  const { keys, home, now = Date.now } = options;
  return {
    keys,
    records: await openRecords(link, options.replicas ?? 1),
    agentJwtMs: options.agentJwtMs ?? IDENTITY.agentJwtMs,
    now,
    async announce(subject, data) {
      link.publish(subject, data);
      await link.flush();
    },
    async pushAccount(jwt) {
      await pushClaims(options, createClaimsUser(keys, now()), jwt);
      keepAccountJwt(keys, home, jwt);
    },
  };
};

export interface OpenAuthority extends Authority {
  close(): Promise<void>;
}

/** The authority of a data directory, over a connection of its own: for single commands. */
export const openAuthority = async (
  options: Omit<AuthorityOptions, "keys">,
  onProblem: (error: unknown) => void,
): Promise<OpenAuthority> => {
  const keys = requireKeys(options.home);
  const user = createPlaneUser(keys, (options.now ?? Date.now)());
  const link = await openPlaneLink({ ...options, user, onProblem });
  try {
    return { ...(await createAuthority(link, { ...options, keys })), close: () => link.close() };
  } catch (error) {
    await link.close();
    throw error;
  }
};
