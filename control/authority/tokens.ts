import { FarhandError } from "../../proto/farhand-error.js";
import { IDENTITY } from "../../proto/identity.js";
import { formatJoinToken } from "../../proto/join-token.js";
import { createSigningKey, publicKeyKind } from "../../proto/nkey.js";
import { checkId } from "../../proto/subjects.js";
import type { Authority } from "./authority.js";
import { mintJoin } from "./mint.js";
import { type TokenRecord, untilWritten } from "./records.js";

export interface TokenOptions {
  readonly workspace: string;
  /** Binds the token to a name; without, whoever joins names the machine. */
  readonly machine?: string | undefined;
  readonly servers: readonly string[];
  /** Certificate (PEM) of the servers' authority, where it is a private one. */
  readonly ca?: string | undefined;
  readonly expiresInMs?: number | undefined;
}

export interface CreatedToken {
  /** The public key of the token, which names it. */
  readonly id: string;
  /** The one line to paste: a secret. */
  readonly text: string;
  readonly expiresMs: number;
}

export const createToken = async (authority: Authority, options: TokenOptions): Promise<CreatedToken> => {
  const workspace = checkId("workspace", options.workspace);
  const machine = options.machine === undefined ? undefined : checkId("machine", options.machine);
  const key = createSigningKey("user");
  const nowMs = authority.now();
  const expiresMs = nowMs + (options.expiresInMs ?? IDENTITY.tokenMs);
  const record: TokenRecord = { workspace, machine, state: "unused", createdMs: nowMs, expiresMs };
  await authority.records.tokens.put(key.publicKey, record, 0);
  const text = formatJoinToken({
    servers: options.servers,
    ca: options.ca,
    authority: authority.keys.controlSigner.publicKey,
    workspace,
    machine,
    // On the bus a little longer than in truth, so that whoever is late is told so in a sentence.
    jwt: mintJoin(authority.keys, {
      workspace,
      publicKey: key.publicKey,
      nowMs,
      expiresMs: expiresMs + IDENTITY.clockMs,
    }),
    seed: key.seed,
    expiresMs,
  });
  return { id: key.publicKey, text, expiresMs };
};

export interface ListedToken {
  readonly id: string;
  readonly workspace: string;
  readonly machine: string | undefined;
  readonly state: "unused" | "used" | "revoked" | "expired";
  readonly createdMs: number;
  readonly expiresMs: number;
  /** The machine that joined with it. */
  readonly usedBy: string | undefined;
}

/** Tokens without their secrets, which nobody has but whoever they were given to. */
export const listTokens = async ({ records, now }: Authority): Promise<ListedToken[]> =>
  (await records.tokens.list())
    .map(({ key, record: { workspace, machine, state, createdMs, expiresMs, usedBy } }) => ({
      id: key,
      workspace,
      machine,
      state: state === "unused" && expiresMs <= now() ? ("expired" as const) : state,
      createdMs,
      expiresMs,
      usedBy: usedBy?.machine,
    }))
    .toSorted((a, b) => a.createdMs - b.createdMs);

const unknown = (): FarhandError =>
  new FarhandError("invalid", "there is no such token", {
    advice: "farhand token list shows their ids; give the whole id",
  });

/** A machine that joined with it already stays: that is what revoking the machine is for. */
export const revokeToken = ({ records }: Authority, id: string): Promise<void> =>
  untilWritten(async () => {
    try {
      publicKeyKind(id);
    } catch {
      throw unknown();
    }
    const { record, revision } = await records.tokens.get(id);
    if (record === undefined) throw unknown();
    if (record.state === "used") {
      throw new FarhandError(
        "invalid",
        `the token was used already, by ${record.workspace}/${record.usedBy?.machine ?? ""}`,
        { advice: `to revoke the machine: farhand revoke ${record.usedBy?.machine ?? "<machine>"}` },
      );
    }
    await records.tokens.put(id, { ...record, state: "revoked" }, revision);
  });
