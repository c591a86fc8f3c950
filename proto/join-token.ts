import { createHash } from "node:crypto";
import * as z from "zod";
import { FarhandError } from "./farhand-error.js";

/** What one pasted string tells a machine that joins. */
export interface JoinToken {
  readonly servers: readonly string[];
  /** The certificate of the authority that signed the servers' certificates, where it is a private one. */
  readonly ca?: string | undefined;
  /** The public key that signs the credentials of those who may command the machine. */
  readonly authority: string;
  readonly workspace: string;
  /** The name that the token is bound to. */
  readonly machine?: string | undefined;
  /** A bus user that may do nothing but redeem, and its one-time secret. */
  readonly jwt: string;
  readonly seed: string;
  readonly expiresMs: number;
}

const PREFIX = "fh1";
const SUM_CHARS = 10;

const schema = z.strictObject({
  s: z.array(z.string()).min(1),
  c: z.string().optional(),
  a: z.string(),
  w: z.string(),
  m: z.string().optional(),
  j: z.string(),
  k: z.string(),
  e: z.number(),
});

const sumOf = (body: string): string =>
  createHash("sha256").update(body).digest("base64url").slice(0, SUM_CHARS);

export const formatJoinToken = (token: JoinToken): string => {
  const { servers, ca, authority, workspace, machine, jwt, seed, expiresMs } = token;
  const fields = { s: servers, c: ca, a: authority, w: workspace, m: machine, j: jwt, k: seed, e: expiresMs };
  const body = Buffer.from(JSON.stringify(fields)).toString("base64url");
  return `${PREFIX}.${body}.${sumOf(body)}`;
};

const jsonOf = (body: string): unknown => {
  try {
    return JSON.parse(Buffer.from(body, "base64url").toString());
  } catch {
    return undefined;
  }
};

/** Reads a token, or says what is wrong with it in one sentence. */
export const parseJoinToken = (text: string): JoinToken => {
  const damaged = (says: string): FarhandError =>
    new FarhandError("invalid", `the join token ${says}`, {
      advice: "copy the whole line that farhand token create printed, or create a new one",
    });
  const [prefix, body = "", sum = "", ...rest] = text.trim().split(".");
  if (prefix !== PREFIX) throw damaged("is not one of farhand");
  if (sum.length < SUM_CHARS || rest.length > 0) throw damaged("is cut short");
  if (sumOf(body) !== sum) throw damaged("is damaged: a part of it was changed or lost");
  const read = schema.safeParse(jsonOf(body));
  if (!read.success) throw damaged("is of another version of farhand");
  const { s, c, a, w, m, j, k, e } = read.data;
  return { servers: s, ca: c, authority: a, workspace: w, machine: m, jwt: j, seed: k, expiresMs: e };
};
