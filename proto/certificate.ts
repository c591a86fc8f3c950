import * as z from "zod";
import { FarhandError } from "./farhand-error.js";
import { isSignedBy } from "./nkey.js";

/**
 * A NATS user JWT is also a certificate: whoever pinned the public key of its signer can tell who
 * the bearer of its key is, in which workspace, and until when.
 */
export interface Certificate {
  readonly jwt: string;
  /** The name of the machine or of the credential. */
  readonly name: string;
  readonly publicKey: string;
  readonly issuer: string;
  readonly workspace: string;
  /** `agent`, `operator` or `reader`; empty for a bus user that is none of them. */
  readonly role: string;
  readonly issuedMs: number;
  /** Infinity if it does not expire. */
  readonly expiresMs: number;
}

const claims = z.object({
  name: z.string(),
  sub: z.string(),
  iss: z.string(),
  iat: z.number(),
  exp: z.number().optional(),
  nats: z.object({ type: z.literal("user"), tags: z.array(z.string()).default([]) }),
});

const unauthentic = (message: string): FarhandError => new FarhandError("unauthenticated", message);

const tag = (tags: readonly string[], name: string): string =>
  tags.find((one) => one.startsWith(`${name}:`))?.slice(name.length + 1) ?? "";

/** Reads a user JWT without trusting it. */
export const readCertificate = (jwt: string): Certificate => {
  const [, payload = ""] = jwt.split(".");
  let read: z.infer<typeof claims>;
  try {
    read = claims.parse(JSON.parse(Buffer.from(payload, "base64url").toString()));
  } catch (error) {
    throw new FarhandError("unauthenticated", "the credential is not a NATS user JWT", { cause: error });
  }
  const { name, sub, iss, iat, exp, nats } = read;
  return {
    jwt,
    name,
    publicKey: sub,
    issuer: iss,
    workspace: tag(nats.tags, "ws"),
    role: tag(nats.tags, "role"),
    issuedMs: iat * 1000,
    expiresMs: exp === undefined || exp === 0 ? Infinity : exp * 1000,
  };
};

/** Reads a user JWT and makes sure that the pinned authority signed it and that it has not expired. */
export const verifyCertificate = (jwt: string, pinned: { authority: string; nowMs: number }): Certificate => {
  const certificate = readCertificate(jwt);
  if (certificate.issuer !== pinned.authority) throw unauthentic("the credential is from another authority");
  const dot = jwt.lastIndexOf(".");
  const signature = Buffer.from(jwt.slice(dot + 1), "base64url");
  if (!isSignedBy(pinned.authority, Buffer.from(jwt.slice(0, dot)), signature)) {
    throw unauthentic("the credential is not signed by its authority");
  }
  if (certificate.expiresMs <= pinned.nowMs) {
    throw unauthentic(
      `the credential ${certificate.name} expired at ${new Date(certificate.expiresMs).toISOString()} (it is ${new Date(pinned.nowMs).toISOString()} here)`,
    );
  }
  return certificate;
};
