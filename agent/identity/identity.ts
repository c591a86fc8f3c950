import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { FarhandError } from "../../proto/farhand-error.js";
import { privateDirectory } from "../../proto/home.js";

/** Who this machine is, as the join made it. */
export interface Identity {
  readonly workspace: string;
  readonly machine: string;
  readonly servers: readonly string[];
  readonly ca?: string | undefined;
  /** The machine's own secret: it never leaves this file. */
  readonly seed: string;
  readonly jwt: string;
  readonly renewalJwt: string;
  /** Pinned: whose signature makes a caller's credential good. */
  readonly authority: string;
  readonly joinedMs: number;
  /** Set when the machine learned that it was revoked. */
  readonly revokedMs?: number | undefined;
}

const schema = z.strictObject({
  workspace: z.string(),
  machine: z.string(),
  servers: z.array(z.string()).min(1),
  ca: z.string().optional(),
  seed: z.string(),
  jwt: z.string(),
  renewalJwt: z.string(),
  authority: z.string(),
  joinedMs: z.number(),
  revokedMs: z.number().optional(),
});

const identityPath = (stateDir: string): string => join(stateDir, "identity.json");

/** Refuses a file that others may read: whoever read it can be this machine. */
export const checkPrivate = (path: string, remedy: string): void => {
  const mode = statSync(path).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  throw new FarhandError("denied", `${path} can be read by others (mode ${mode.toString(8)})`, {
    advice: `chmod 600 ${path}, and ${remedy} if somebody may have read it`,
  });
};

export const readIdentity = (stateDir: string): Identity | undefined => {
  const path = identityPath(stateDir);
  if (!existsSync(path)) return undefined;
  checkPrivate(path, "join again with --force");
  try {
    return schema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    throw new FarhandError("invalid", `${path} is not a farhand identity`, {
      cause: error,
      advice: "join again with --force",
    });
  }
};

/** Throws what `run` says on a machine that was revoked. */
export const checkNotRevoked = ({ workspace, machine, revokedMs }: Identity): void => {
  if (revokedMs === undefined) return;
  throw new FarhandError(
    "denied",
    `this machine, ${workspace}/${machine}, was revoked (learned at ${new Date(revokedMs).toISOString()})`,
    {
      advice: "to join again, get a token (farhand token create) and run farhand-agent join --force <token>",
    },
  );
};

/** Whole or not at all, and never readable by others. */
export const writeIdentity = (stateDir: string, identity: Identity): void => {
  privateDirectory(stateDir);
  const temporary = `${identityPath(stateDir)}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(schema.parse(identity), null, 2)}\n`, {
    mode: 0o600,
    flush: true,
  });
  chmodSync(temporary, 0o600);
  renameSync(temporary, identityPath(stateDir));
};

export const removeIdentity = (stateDir: string): void => rmSync(identityPath(stateDir), { force: true });
