import type { Database, RootDatabase } from "lmdb";

const KEY = "list";

/** The last trust list, on disk before it counts, so that the bus cannot show an older one after a restart. */
export const openTrustStore = (root: RootDatabase) => {
  const db: Database<Buffer, string> = root.openDB({ name: "trust", encoding: "binary" });
  return {
    read: (): Uint8Array | undefined => db.get(KEY),
    write: (signed: Uint8Array): void => db.putSync(KEY, Buffer.from(signed)),
  };
};
