import { Presence } from "../../proto/gen/machine.js";
import { formatMachineRef, parseSubject, subjects } from "../../proto/subjects.js";
import { type Authority, createAuthority } from "../authority/authority.js";
import type { AuthorityKeys } from "../authority/keys.js";
import { createPlaneUser } from "../authority/mint.js";
import { reconcile } from "../authority/revoke.js";
import type { BusPlace } from "../wire/bus-user.js";
import { openPlaneLink, type PlaneLink } from "../wire/plane-link.js";
import { createDirectory, type Directory } from "./directory.js";
import { serveIdentity, serveSeen } from "./services.js";

/** The control plane: hears which machines are there, answers for it, and issues identities. */
export interface Plane<A extends Authority | undefined = Authority | undefined> {
  readonly directory: Directory;
  /** Absent on a bus without credentials. */
  readonly authority: A;
  close(): Promise<void>;
}

export interface PlaneOptions extends BusPlace {
  readonly onProblem: (error: unknown) => void;
  /** Who issues identities here; absent on a bus without credentials. */
  readonly identity?: PlaneIdentity | undefined;
}

export interface PlaneIdentity {
  readonly keys: AuthorityKeys;
  readonly home: string;
  readonly replicas?: number | undefined;
  readonly agentJwtMs?: number | undefined;
}

const issue = async (
  link: PlaneLink,
  { identity, onProblem, ...place }: PlaneOptions,
): Promise<Authority | undefined> => {
  if (identity === undefined) return undefined;
  const authority = await createAuthority(link, { ...place, ...identity });
  await reconcile(authority);
  serveIdentity(link, authority, onProblem);
  return authority;
};

export const startPlane = async (options: PlaneOptions): Promise<Plane> => {
  const { identity, onProblem } = options;
  const user = identity === undefined ? undefined : createPlaneUser(identity.keys, Date.now());
  const link = await openPlaneLink({ ...options, user, onProblem });
  try {
    const directory = createDirectory(() => performance.now());
    link.hear(subjects.presenceOfAll, (subject, data) => {
      const ref = parseSubject(subject);
      if (ref !== undefined) directory.hear(formatMachineRef(ref), Presence.decode(data));
    });
    serveSeen(link, { directory, isOpenBus: identity === undefined });
    const authority = await issue(link, options);
    // Whoever asks after this is answered.
    await link.flush();
    return { directory, authority, close: () => link.close() };
  } catch (error) {
    await link.close();
    throw error;
  }
};
