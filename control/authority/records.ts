import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { FarhandError } from "../../proto/farhand-error.js";
import { TRUST_BUCKET } from "../../proto/identity.js";
import type { MachineRef } from "../../proto/subjects.js";
import type { Bucket } from "../wire/bucket.js";
import type { PlaneLink } from "../wire/plane-link.js";

/** What the control plane knows, in buckets on the bus: it keeps nothing of its own. */

const tokenSchema = z.object({
  workspace: z.string(),
  /** The name that it is bound to. */
  machine: z.string().optional(),
  state: z.enum(["unused", "used", "revoked"]),
  createdMs: z.number(),
  expiresMs: z.number(),
  usedBy: z.object({ machine: z.string(), publicKey: z.string(), atMs: z.number() }).optional(),
});

const machineSchema = z.object({
  workspace: z.string(),
  machine: z.string(),
  publicKey: z.string(),
  status: z.enum(["active", "revoked"]),
  hostname: z.string(),
  enrolledMs: z.number(),
  /** The key of the machine that this one took the name over from. */
  replaced: z.string().optional(),
});

const credentialSchema = z.object({
  workspace: z.string(),
  name: z.string(),
  role: z.enum(["operator", "reader"]),
  publicKey: z.string(),
  status: z.enum(["active", "revoked"]),
  createdMs: z.number(),
  expiresMs: z.number().optional(),
});

const revocationSchema = z.object({
  what: z.enum(["machine", "credential"]),
  workspace: z.string(),
  name: z.string(),
  publicKey: z.string(),
  revokedMs: z.number(),
  by: z.string(),
  /** When the last JWT of the key ends by itself; absent if one does not. */
  expiresMs: z.number().optional(),
});

export type TokenRecord = z.infer<typeof tokenSchema>;
export type MachineRecord = z.infer<typeof machineSchema>;
export type CredentialRecord = z.infer<typeof credentialSchema>;
export type RevocationRecord = z.infer<typeof revocationSchema>;

export interface Held<T> {
  readonly record: T | undefined;
  readonly revision: number;
}

/** Records of one kind; a write names the revision it was decided on. */
export interface Store<T> {
  get(key: string): Promise<Held<T>>;
  put(key: string, record: T, revision: number): Promise<void>;
  list(): Promise<readonly { readonly key: string; readonly record: T }[]>;
}

const storeOf = <T>(bucket: Bucket, schema: z.ZodType<T>): Store<T> => {
  const read = (value: Uint8Array): T => schema.parse(JSON.parse(Buffer.from(value).toString()));
  return {
    async get(key) {
      const { value, revision } = await bucket.get(key);
      return { record: value === undefined ? undefined : read(value), revision };
    },
    put: (key, record, revision) => bucket.put(key, Buffer.from(JSON.stringify(record)), revision),
    async list() {
      const entries = await bucket.list();
      return entries.flatMap(({ key, value }) => (value === undefined ? [] : [{ key, record: read(value) }]));
    },
  };
};

export interface Records {
  /** By the token's public key. */
  readonly tokens: Store<TokenRecord>;
  /** By `recordKey`. */
  readonly machines: Store<MachineRecord>;
  readonly credentials: Store<CredentialRecord>;
  /** By the public key that is revoked. */
  readonly revocations: Store<RevocationRecord>;
  /** Signed lists, by workspace. */
  readonly trust: Bucket;
}

export const recordKey = ({ workspace, machine }: MachineRef): string => `${workspace}.${machine}`;

const READY_MS = 15_000;
const RETRY_MS = 50;

/** JetStream takes a moment after the server takes connections, and longer where it elects leaders. */
const onceReady = async <T>(open: () => Promise<T>): Promise<T> => {
  for (const until = performance.now() + READY_MS; ; await sleep(RETRY_MS)) {
    try {
      return await open();
    } catch (error) {
      if (performance.now() > until)
        throw new FarhandError("control_unavailable", "the bus keeps no records: JetStream is not ready", {
          cause: error,
          advice: "check that nats-server runs with jetstream, and its log",
        });
    }
  }
};

export const openRecords = (link: PlaneLink, replicas: number): Promise<Records> =>
  onceReady(async () => {
    const [tokens, machines, credentials, revocations, trust] = await Promise.all([
      link.bucket("tokens", { replicas }),
      link.bucket("machines", { replicas }),
      link.bucket("credentials", { replicas }),
      link.bucket("revocations", { replicas }),
      link.bucket(TRUST_BUCKET, { replicas, direct: true }),
    ]);
    return {
      tokens: storeOf(tokens, tokenSchema),
      machines: storeOf(machines, machineSchema),
      credentials: storeOf(credentials, credentialSchema),
      revocations: storeOf(revocations, revocationSchema),
      trust,
    };
  });

const TRIES = 50;
const MAX_PAUSE_MS = 20;

/** Reads, decides and writes anew when somebody else wrote in between. */
export const untilWritten = async <T>(attempt: () => Promise<T>): Promise<T> => {
  for (let left = TRIES; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0 || !(error instanceof FarhandError) || error.code !== "conflict") throw error;
      await sleep(Math.random() * MAX_PAUSE_MS);
    }
  }
};
