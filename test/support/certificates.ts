import { createSigningKey, type SigningKey } from "../../proto/nkey.js";
import { readCertificate } from "../../proto/certificate.js";
import type { Credentials } from "../../control/credentials.js";

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

export interface MintOptions {
  readonly signer: SigningKey;
  readonly name: string;
  readonly publicKey: string;
  readonly workspace?: string;
  readonly role?: string;
  readonly issuedMs?: number;
  readonly expiresMs?: number;
}

/** A user JWT, made by hand so that a test can make wrong ones too. */
export const mint = (options: MintOptions): string => {
  const {
    signer,
    name,
    publicKey,
    workspace = "w1",
    role = "operator",
    issuedMs = Date.now(),
    expiresMs,
  } = options;
  const claims = {
    name,
    sub: publicKey,
    iss: signer.publicKey,
    iat: Math.floor(issuedMs / 1000),
    ...(expiresMs === undefined ? {} : { exp: Math.floor(expiresMs / 1000) }),
    nats: { type: "user", version: 2, tags: [`ws:${workspace}`, `role:${role}`] },
  };
  const body = `${encode({ typ: "JWT", alg: "ed25519-nkey" })}.${encode(claims)}`;
  return `${body}.${signer.sign(Buffer.from(body)).toString("base64url")}`;
};

/** Credentials of a caller, signed by the authority. */
export const mintCredentials = (
  authority: SigningKey,
  agentAuthority: string,
  fields: Partial<MintOptions> = {},
): Credentials => {
  const key = createSigningKey("user");
  const jwt = mint({ signer: authority, name: "caller", publicKey: key.publicKey, ...fields });
  return { certificate: readCertificate(jwt), key, agentAuthority };
};
