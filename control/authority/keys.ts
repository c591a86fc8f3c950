import { join } from "node:path";
import * as z from "zod";
import { FarhandError } from "../../proto/farhand-error.js";
import { privateDirectory } from "../../proto/home.js";
import { createSigningKey, type NkeyKind, type SigningKey, signingKeyFromSeed } from "../../proto/nkey.js";
import { createPrivateFile, readPrivateFile } from "./private-file.js";

/** Every key of a deployment and its kind. Whoever has this file is the deployment. */
const KINDS = {
  operator: "operator",
  system: "account",
  account: "account",
  /** Signs machines, within a template that the server enforces. */
  agentSigner: "account",
  /** Signs what a machine may do nothing with but renew. */
  renewSigner: "account",
  /** Signs the bus users of join tokens. */
  joinSigner: "account",
  /** Signs those who may command machines: the authority that machines pin. */
  controlSigner: "account",
  /** Signs the control plane's own users. */
  planeSigner: "account",
} as const satisfies Record<string, NkeyKind>;

export type KeyName = keyof typeof KINDS;
export type AuthorityKeys = Readonly<Record<KeyName, SigningKey>>;

const schema = z.strictObject({
  operator: z.string(),
  system: z.string(),
  account: z.string(),
  agentSigner: z.string(),
  renewSigner: z.string(),
  joinSigner: z.string(),
  controlSigner: z.string(),
  planeSigner: z.string(),
});

const mapKeys = (make: (name: KeyName) => SigningKey): AuthorityKeys => ({
  operator: make("operator"),
  system: make("system"),
  account: make("account"),
  agentSigner: make("agentSigner"),
  renewSigner: make("renewSigner"),
  joinSigner: make("joinSigner"),
  controlSigner: make("controlSigner"),
  planeSigner: make("planeSigner"),
});

export const createKeys = (): AuthorityKeys => mapKeys((name) => createSigningKey(KINDS[name]));

export const authorityPath = (home: string): string => join(home, "authority.json");

const parse = (text: string, path: string): AuthorityKeys => {
  try {
    const seeds = schema.parse(JSON.parse(text));
    return mapKeys((name) => {
      const key = signingKeyFromSeed(seeds[name]);
      if (key.kind !== KINDS[name]) throw new Error(`${name} is not the key of an ${KINDS[name]}`);
      return key;
    });
  } catch (error) {
    // What the parser says may quote the file, which is all secrets.
    throw new FarhandError("invalid", `${path} is not an authority of farhand`, {
      cause: error instanceof z.ZodError || error instanceof FarhandError ? error : undefined,
      advice: "restore it from a backup: with another authority every machine has to join again",
    });
  }
};

/** The keys kept in this directory, or undefined if there are none. */
export const readKeys = (home: string): AuthorityKeys | undefined => {
  const path = authorityPath(home);
  const text = readPrivateFile(path, "set up a new authority");
  return text === undefined ? undefined : parse(text, path);
};

/** As readKeys, for those who cannot go on without. */
export const requireKeys = (home: string): AuthorityKeys => {
  const keys = readKeys(home);
  if (keys !== undefined) return keys;
  throw new FarhandError("denied", `there is no authority at ${authorityPath(home)}`, {
    advice: "run this where farhand up or farhand plane runs, or name its data directory with FARHAND_HOME",
  });
};

/** The keys kept in this directory, made if there are none yet; those of an operator that exists are given. */
export const openKeys = (
  home: string,
  given: Partial<Pick<AuthorityKeys, "operator" | "system">> = {},
): AuthorityKeys => {
  const kept = readKeys(home);
  if (kept !== undefined) return kept;
  const made = { ...createKeys(), ...given };
  const seeds = Object.fromEntries(Object.entries(made).map(([name, { seed }]) => [name, seed]));
  try {
    privateDirectory(home);
    createPrivateFile(authorityPath(home), `${JSON.stringify(seeds, null, 2)}\n`);
  } catch (error) {
    // Another process made them in this moment: there must be one authority only.
    const others = error instanceof FarhandError && error.code === "conflict" ? readKeys(home) : undefined;
    if (others === undefined) throw error;
    return others;
  }
  return made;
};
