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

/** Hears which machines are there, and answers for it. */
export interface OpenPlane {
  readonly directory: Directory;
  close(): Promise<void>;
}

/** The control plane: the same, and it issues identities. */
export interface Plane extends OpenPlane {
  readonly authority: Authority;
}

export interface OpenPlaneOptions extends BusPlace {
  readonly onProblem: (error: unknown) => void;
}

export interface PlaneOptions extends OpenPlaneOptions {
  readonly keys: AuthorityKeys;
  readonly home: string;
  readonly replicas?: number | undefined;
  readonly agentJwtMs?: number | undefined;
}

const hearPresence = (link: PlaneLink): Directory => {
  const directory = createDirectory(() => performance.now());
  link.hear(subjects.presenceOfAll, (subject, data) => {
    const ref = parseSubject(subject);
    if (ref !== undefined) directory.hear(formatMachineRef(ref), Presence.decode(data));
  });
  return directory;
};

export const startPlane = async (options: PlaneOptions): Promise<Plane> => {
  const { keys, onProblem } = options;
  const link = await openPlaneLink({ ...options, user: createPlaneUser(keys, Date.now()) });
  try {
    const directory = hearPresence(link);
    const authority = await createAuthority(link, options);
    await reconcile(authority);
    serveSeen(link, { directory, inboxes: ["_INBOX_control"] });
    serveIdentity(link, authority, onProblem);
    // Whoever asks after this is answered.
    await link.flush();
    return { directory, authority, close: () => link.close() };
  } catch (error) {
    await link.close();
    throw error;
  }
};

/** On a bus without credentials of ours, where nobody can join and everybody listens where he likes. */
export const startOpenPlane = async (options: OpenPlaneOptions): Promise<OpenPlane> => {
  const link = await openPlaneLink(options);
  const directory = hearPresence(link);
  serveSeen(link, { directory, inboxes: ["_INBOX_control", "_INBOX"] });
  await link.flush();
  return { directory, close: () => link.close() };
};
