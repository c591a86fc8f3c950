import { readFileSync, statSync } from "node:fs";
import { type Certificate, readCertificate } from "../proto/certificate.js";
import { FarhandError } from "../proto/farhand-error.js";
import { signingKeyFromSeed, type SigningKey } from "../proto/nkey.js";

/** What a backend, a person or an AI agent needs to be known to machines. */
export interface Credentials {
  readonly certificate: Certificate;
  readonly key: SigningKey;
  /** Pinned: whose signature makes a machine's own certificate good. */
  readonly agentAuthority: string;
}

const block = (name: string, body: string): string =>
  `-----BEGIN ${name}-----\n${body}\n------END ${name}------\n`;

/** A NATS creds file, which every NATS client reads, with one block more for farhand. */
export const formatCredentials = (jwt: string, seed: string, agentAuthority: string): string =>
  [
    block("NATS USER JWT", jwt),
    "This file is a secret: whoever has it can command your machines.",
    "",
    block("USER NKEY SEED", seed),
    block("FARHAND AGENT AUTHORITY", agentAuthority),
  ].join("\n");

const bodyOf = (text: string, name: string): string | undefined =>
  new RegExp(`-{3,}BEGIN ${name}-{3,}\\s+(\\S+)\\s+-{3,}END ${name}-{3,}`).exec(text)?.[1];

export const parseCredentials = (text: string, where: string): Credentials => {
  const [jwt, seed, agentAuthority] = ["NATS USER JWT", "USER NKEY SEED", "FARHAND AGENT AUTHORITY"].map(
    (name) => bodyOf(text, name),
  );
  if (jwt === undefined || seed === undefined || agentAuthority === undefined) {
    throw new FarhandError("unauthenticated", `${where} is not a creds file of farhand`, {
      advice: "create one with farhand creds create",
    });
  }
  const key = signingKeyFromSeed(seed);
  const certificate = readCertificate(jwt);
  if (certificate.publicKey !== key.publicKey) {
    throw new FarhandError("unauthenticated", `${where} has a JWT and a seed that do not belong together`, {
      advice: "create a new one with farhand creds create",
    });
  }
  return { certificate, key, agentAuthority };
};

/** Reads a creds file; one that others may read is refused. */
export const readCredentials = (path: string): Credentials => {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new FarhandError(
      "unauthenticated",
      `the creds file ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      {
        advice: "name one with FARHAND_CREDS, or create one with farhand creds create",
      },
    );
  }
  const mode = statSync(path).mode & 0o777;
  if (mode & 0o077) {
    throw new FarhandError(
      "unauthenticated",
      `the creds file ${path} can be read by others (mode ${mode.toString(8)})`,
      {
        advice: `chmod 600 ${path}, and create new credentials if somebody may have read it`,
      },
    );
  }
  return parseCredentials(text, path);
};
