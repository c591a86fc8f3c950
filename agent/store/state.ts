import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type RootDatabase, open } from "lmdb";
import { FarhandError } from "../../proto/farhand-error.js";
import { isSameProcess, type ProcessIdentity } from "../host/processes/identity.js";

/**
 * What must outlive the agent, each commit flushed to disk: the fence, the generation of this
 * identity, and who is running. The journal has a store of its own.
 */
export interface State {
  readonly db: RootDatabase;
  /** How many times this identity was started; told to other instances in claims. */
  readonly generation: number;
  /** Takes over a generation learned from another instance, and goes beyond it. */
  outbid(generation: number): number;
  close(): Promise<void>;
}

/** Makes a directory that only its owner may enter. */
export const privateDirectory = (path: string): string => {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
  return path;
};

const HOLDER = "instance";
const GENERATION = "generation";

/**
 * Opens the state for this process alone. The check and the claim are one write transaction,
 * which lmdb lets only one process at a time have, and which a killed process cannot keep.
 */
export const openState = (stateDir: string, self: ProcessIdentity): State => {
  privateDirectory(stateDir);
  const db = open({ path: join(stateDir, "state.mdb"), noSubdir: true });
  chmodSync(join(stateDir, "state.mdb"), 0o600);
  let generation = 0;
  db.transactionSync(() => {
    const holder: ProcessIdentity | undefined = db.get(HOLDER);
    if (holder !== undefined && isSameProcess(holder)) {
      throw new FarhandError(
        "conflict",
        `another farhand-agent (pid ${holder.pid}) runs with the state in ${stateDir}`,
        {
          detail: { pid: String(holder.pid), state: stateDir },
          advice: "stop that one first, or give this one another --state directory",
        },
      );
    }
    generation = Number(db.get(GENERATION) ?? 0) + 1;
    db.putSync(HOLDER, self);
    db.putSync(GENERATION, generation);
  });
  return {
    db,
    get generation() {
      return generation;
    },
    outbid(other) {
      generation = Math.max(generation, other) + 1;
      db.putSync(GENERATION, generation);
      return generation;
    },
    async close() {
      db.removeSync(HOLDER);
      await db.close();
    },
  };
};
