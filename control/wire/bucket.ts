import { JetStreamApiError } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import { FarhandError } from "../../proto/farhand-error.js";

export interface Entry {
  readonly key: string;
  /** Undefined for a key that holds nothing. */
  readonly value: Uint8Array | undefined;
  /** What a write must name to be sure that nobody wrote in between; 0 for a key never written. */
  readonly revision: number;
}

/** A key-value bucket on the bus, written by compare-and-set only. */
export interface Bucket {
  get(key: string): Promise<Entry>;
  /** Writes if the key is still at this revision, else throws `conflict`. */
  put(key: string, value: Uint8Array, revision: number): Promise<void>;
  /** Every entry that holds something; `filter` may have wildcards, as subjects do. */
  list(filter?: string): Promise<readonly Entry[]>;
}

export interface BucketOptions {
  readonly replicas: number;
  /** Lets those who may not use JetStream read single keys, from any replica. */
  readonly direct?: boolean;
}

/** The server's codes for "somebody wrote in between". */
const WRONG_LAST_SEQUENCE: ReadonlySet<number> = new Set([10071, 10164]);

const isConflict = (error: unknown): boolean =>
  error instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.has(error.code);

/** What a bucket does, with the two faults that it can have. */
const guarded = async <T>(key: string, act: () => Promise<T>): Promise<T> => {
  try {
    return await act();
  } catch (error) {
    if (isConflict(error))
      throw new FarhandError("conflict", `${key} was changed by somebody else`, { cause: error });
    const why = error instanceof Error ? error.message : String(error);
    throw new FarhandError("control_unavailable", `the records on the bus cannot be reached: ${why}`, {
      ran: "maybe",
      cause: error,
    });
  }
};

const bucketOf = (kv: KV): Bucket => ({
  get: (key) =>
    guarded(key, async () => {
      const entry = await kv.get(key);
      if (entry === null) return { key, value: undefined, revision: 0 };
      return { key, value: entry.operation === "PUT" ? entry.value : undefined, revision: entry.revision };
    }),
  put: (key, value, revision) =>
    guarded(key, async () => void (await kv.put(key, value, { previousSeq: revision }))),
  list: (filter = ">") =>
    guarded(filter, async () => {
      const entries: Entry[] = [];
      for await (const { key, value, revision, operation } of await kv.history({ key: filter }))
        if (operation === "PUT") entries.push({ key, value, revision });
      return entries;
    }),
});

/** Opens a bucket, made if there is none yet. */
export const openBucket = async (
  nc: NatsConnection,
  name: string,
  { replicas, direct = false }: BucketOptions,
): Promise<Bucket> =>
  bucketOf(await new Kvm(nc).create(name, { replicas, history: 1, allow_direct: direct }));
