import {
  createHmac,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from "node:crypto";

/**
 * What both sides must compute alike to know whom they talk to. The first request to a machine
 * carries a hello (certificate, ephemeral key, signature); both derive a session key from the two
 * ephemeral keys; later requests and all answers carry an HMAC with it.
 */

/** The one NATS header of farhand; its value is a form below, its fields separated by spaces. */
export const AUTH_HEADER = "Fh";

/**
 * The header as it stands on the wire. The NATS library's own encoding of headers costs more than
 * the proof itself; it asks its header object to encode itself, which lets us answer with this.
 */
export const encodeAuthHeader = (proof: string): Uint8Array =>
  Buffer.from(`NATS/1.0\r\n${AUTH_HEADER}: ${proof}\r\n\r\n`);

const HEADER_START = `NATS/1.0\r\n${AUTH_HEADER}: `;

/**
 * The proof in a message that the NATS library delivered. Its own reading of headers costs more
 * than the check of the proof, so ours, as written above, are read where the library keeps them;
 * other headers are left to it.
 */
export const proofIn = (message: DeliveredMessage): string => {
  const size = message._msg?.hdr ?? -1;
  const raw = message._rdata;
  if (size > 0 && raw !== undefined) {
    const text = Buffer.from(raw.buffer, raw.byteOffset, size).toString("latin1");
    const end = text.indexOf("\r\n", HEADER_START.length);
    if (text.startsWith(HEADER_START) && end === size - 4) return text.slice(HEADER_START.length, end);
  }
  return message.headers?.get(AUTH_HEADER) ?? "";
};

/** As much of a delivered message as is read here. */
export interface DeliveredMessage {
  readonly headers?: { get(name: string): string } | undefined;
  readonly _rdata?: Uint8Array;
  readonly _msg?: { readonly hdr: number };
}

const X25519_DER = Buffer.from("302a300506032b656e032100", "hex");

/** Joined with their lengths, so that no two lists of fields give the same bytes. */
const framed = (domain: string, fields: readonly (string | Uint8Array)[]): Buffer => {
  const parts: Uint8Array[] = [Buffer.from(`${domain}\0`)];
  for (const field of fields) {
    const bytes = typeof field === "string" ? Buffer.from(field) : field;
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    parts.push(length, bytes);
  }
  return Buffer.concat(parts);
};

export interface EphemeralKey {
  readonly publicKey: string;
  /** The secret shared with the owner of the other public key. */
  shared(otherPublicKey: string): Buffer;
}

export const createEphemeralKey = (): EphemeralKey => {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(X25519_DER.length);
  return {
    publicKey: raw.toString("base64url"),
    shared(other) {
      const key: KeyObject = createPublicKey({
        key: Buffer.concat([X25519_DER, Buffer.from(other, "base64url")]),
        format: "der",
        type: "spki",
      });
      return diffieHellman({ privateKey, publicKey: key });
    },
  };
};

/** Prepared once, so that a MAC with it costs little. */
export type SessionKey = KeyObject;

export interface SessionFacts {
  readonly sessionId: string;
  readonly callerEphemeral: string;
  readonly agentEphemeral: string;
  readonly callerKey: string;
  readonly agentKey: string;
}

/** Bound to both ephemeral keys and both identities, so that no part of another exchange fits. */
export const sessionKey = (shared: Uint8Array, facts: SessionFacts): SessionKey => {
  const { sessionId, callerEphemeral, agentEphemeral, callerKey, agentKey } = facts;
  const info = framed("farhand session 1", [sessionId, callerEphemeral, agentEphemeral, callerKey, agentKey]);
  return createSecretKey(Buffer.from(hkdfSync("sha256", shared, Buffer.alloc(0), info, 32)));
};

/** The message that a request is: where it goes, where its answer goes, and its bytes. */
export interface Envelope {
  readonly subject: string;
  readonly reply: string;
  readonly payload: Uint8Array;
}

/** What the caller signs in a hello. */
export const helloText = (
  { subject, reply, payload }: Envelope,
  hello: { jwt: string; ephemeral: string; timeMs: number },
): Buffer =>
  framed("farhand hello 1", [subject, reply, String(hello.timeMs), hello.ephemeral, hello.jwt, payload]);

/** What the agent signs in its answer to a hello, or in a refusal: bound to the one request by its proof. */
export const welcomeText = (welcome: {
  proof: string;
  sessionId: string;
  ephemeral: string;
  payload: Uint8Array;
}): Buffer =>
  framed("farhand welcome 1", [welcome.proof, welcome.sessionId, welcome.ephemeral, welcome.payload]);

/** On the path of every request: the fields are one text, with their lengths, and the payload goes in as it is. */
export const requestMac = (key: SessionKey, counter: number, { subject, reply, payload }: Envelope): string =>
  createHmac("sha256", key)
    .update(`q ${counter} ${subject.length} ${reply.length} ${subject} ${reply} `)
    .update(payload)
    .digest("base64url");

export const answerMac = (key: SessionKey, counter: number, payload: Uint8Array): string =>
  createHmac("sha256", key).update(`a ${counter} `).update(payload).digest("base64url");

/** Compares MACs in constant time; their length is no secret. */
export const isSame = (a: string, b: string): boolean => {
  const [bytesA, bytesB] = [Buffer.from(a), Buffer.from(b)];
  return bytesA.length === bytesB.length && timingSafeEqual(bytesA, bytesB);
};

/** What a request proves about its sender. */
export type RequestProof =
  | {
      readonly kind: "hello";
      readonly jwt: string;
      readonly ephemeral: string;
      readonly timeMs: number;
      readonly signature: string;
    }
  | { readonly kind: "session"; readonly sessionId: string; readonly counter: number; readonly mac: string };

/** What an answer proves about its sender. */
export type AnswerProof =
  | {
      readonly kind: "welcome";
      readonly jwt: string;
      readonly sessionId: string;
      readonly ephemeral: string;
      readonly signature: string;
    }
  | { readonly kind: "session"; readonly mac: string };

export const formatRequestProof = (proof: RequestProof): string =>
  proof.kind === "hello"
    ? `h1 ${proof.jwt} ${proof.ephemeral} ${proof.timeMs} ${proof.signature}`
    : `s1 ${proof.sessionId} ${proof.counter} ${proof.mac}`;

/** Undefined for anything that is not a proof. */
export const parseRequestProof = (text: string): RequestProof | undefined => {
  const [form, first = "", second = "", third = "", fourth = ""] = text.split(" ");
  if (form === "s1") return { kind: "session", sessionId: first, counter: Number(second), mac: third };
  if (form !== "h1") return undefined;
  return { kind: "hello", jwt: first, ephemeral: second, timeMs: Number(third), signature: fourth };
};

export const formatAnswerProof = (proof: AnswerProof): string =>
  proof.kind === "welcome"
    ? `w1 ${proof.jwt} ${proof.sessionId} ${proof.ephemeral} ${proof.signature}`
    : `a1 ${proof.mac}`;

export const parseAnswerProof = (text: string): AnswerProof | undefined => {
  const [form, first = "", second = "", third = "", fourth = ""] = text.split(" ");
  if (form === "a1") return { kind: "session", mac: first };
  if (form !== "w1") return undefined;
  return { kind: "welcome", jwt: first, sessionId: second, ephemeral: third, signature: fourth };
};

/** The part of a request's proof that an answer is bound to. */
export const proofMark = (proof: RequestProof): string =>
  proof.kind === "hello" ? proof.signature : proof.mac;

/** A refusal by an agent that knows no session carries these in place of a session and a key. */
export const NO_SESSION = "-";
