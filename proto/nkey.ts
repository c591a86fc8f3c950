import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as ed25519Sign,
  verify as ed25519Verify,
} from "node:crypto";
import { FarhandError } from "./farhand-error.js";

/**
 * NATS keys (nkeys) through node:crypto, which signs in microseconds where the library's own
 * signing blocks for tens of milliseconds. An nkey is Ed25519 in base32, with a letter for its kind
 * and a checksum.
 */

export type NkeyKind = "user" | "account" | "operator";

const KINDS: Readonly<Record<NkeyKind, number>> = { user: 20 << 3, account: 0, operator: 14 << 3 };
const SEED = 18 << 3;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const RAW_BYTES = 32;
const PRIVATE_DER = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_DER = Buffer.from("302a300506032b6570032100", "hex");

const crc16 = (bytes: Uint8Array): number => {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc;
};

const toBase32 = (bytes: Uint8Array): string => {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET.charAt((value >>> (bits - 5)) & 31);
    value &= 0xff;
  }
  return bits > 0 ? text + ALPHABET.charAt((value << (5 - bits)) & 31) : text;
};

const fromBase32 = (text: string): Buffer => {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const char of text) {
    const digit = ALPHABET.indexOf(char);
    if (digit < 0) throw new FarhandError("invalid", "a key has characters that no key has");
    value = ((value << 5) | digit) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bytes.push((value >>> (bits - 8)) & 0xff);
      bits -= 8;
    }
  }
  return Buffer.from(bytes);
};

const withChecksum = (bytes: Buffer): string => {
  const crc = Buffer.alloc(2);
  crc.writeUInt16LE(crc16(bytes));
  return toBase32(Buffer.concat([bytes, crc]));
};

const checked = (text: string): Buffer => {
  const raw = fromBase32(text);
  const body = raw.subarray(0, -2);
  if (raw.length < 3 || crc16(body) !== raw.readUInt16LE(raw.length - 2)) {
    throw new FarhandError("invalid", "a key is damaged: its checksum does not fit");
  }
  return body;
};

const publicText = (kind: NkeyKind, raw: Uint8Array): string =>
  withChecksum(Buffer.concat([Buffer.from([KINDS[kind]]), raw]));

const seedText = (kind: NkeyKind, raw: Uint8Array): string => {
  const prefix = KINDS[kind];
  return withChecksum(Buffer.concat([Buffer.from([SEED | (prefix >> 5), (prefix & 31) << 3]), raw]));
};

const kindOf = (prefix: number): NkeyKind => {
  for (const kind of ["user", "account", "operator"] as const) if (KINDS[kind] === prefix) return kind;
  throw new FarhandError("invalid", "a key is of a kind that is not used here");
};

/** A key that can sign. */
export interface SigningKey {
  readonly kind: NkeyKind;
  readonly publicKey: string;
  /** The secret itself: for 0600 files only. */
  readonly seed: string;
  sign(data: Uint8Array): Buffer;
}

const signingKeyOf = (kind: NkeyKind, rawSeed: Uint8Array): SigningKey => {
  const key = createPrivateKey({ key: Buffer.concat([PRIVATE_DER, rawSeed]), format: "der", type: "pkcs8" });
  const raw = createPublicKey(key).export({ format: "der", type: "spki" }).subarray(PUBLIC_DER.length);
  return {
    kind,
    publicKey: publicText(kind, raw),
    seed: seedText(kind, rawSeed),
    sign: (data) => ed25519Sign(null, data, key),
  };
};

export const createSigningKey = (kind: NkeyKind): SigningKey => {
  const der = generateKeyPairSync("ed25519").privateKey.export({ format: "der", type: "pkcs8" });
  return signingKeyOf(kind, der.subarray(der.length - RAW_BYTES));
};

export const signingKeyFromSeed = (seed: string): SigningKey => {
  const body = checked(seed.trim());
  const [first = 0, second = 0] = body;
  if ((first & 0xf8) !== SEED || body.length !== RAW_BYTES + 2)
    throw new FarhandError("invalid", "this is not the seed of a key");
  return signingKeyOf(kindOf(((first & 7) << 5) | (second >> 3)), body.subarray(2));
};

const publicKeys = new Map<string, KeyObject>();
const PUBLIC_KEYS_KEPT = 1_000;

const publicKeyObject = (publicKey: string): KeyObject => {
  const known = publicKeys.get(publicKey);
  if (known !== undefined) return known;
  const body = checked(publicKey);
  kindOf(body[0] ?? 0);
  if (body.length !== RAW_BYTES + 1) throw new FarhandError("invalid", "this is not a public key");
  const key = createPublicKey({
    key: Buffer.concat([PUBLIC_DER, body.subarray(1)]),
    format: "der",
    type: "spki",
  });
  if (publicKeys.size >= PUBLIC_KEYS_KEPT) publicKeys.clear();
  publicKeys.set(publicKey, key);
  return key;
};

/** Is this signature by the owner of the key? A key that is none has signed nothing. */
export const isSignedBy = (publicKey: string, data: Uint8Array, signature: Uint8Array): boolean => {
  try {
    return ed25519Verify(null, data, publicKeyObject(publicKey), signature);
  } catch {
    return false;
  }
};

/** The kind of a public key, or `invalid`. */
export const publicKeyKind = (publicKey: string): NkeyKind => kindOf(checked(publicKey)[0] ?? 0);

/**
 * Answers a NATS server's challenge, in the form that its client library calls for; the library's
 * own way to sign it takes tens of milliseconds at every connect.
 */
export const answerChallenge =
  (key: SigningKey, jwt: () => string) =>
  (nonce = ""): { jwt: string; nkey: string; sig: string } => ({
    jwt: jwt(),
    nkey: key.publicKey,
    sig: nonce === "" ? "" : key.sign(Buffer.from(nonce)).toString("base64url"),
  });
