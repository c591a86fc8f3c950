import { chmodSync, statSync } from "node:fs";
import { join } from "node:path";
import { type RootDatabase, open } from "lmdb";
import { FarhandError } from "../../proto/farhand-error.js";
import { privateDirectory } from "../../proto/home.js";
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

const HOLDER = "instance";
const GENERATION = "generation";

/** Who has the state, and in which file: a copy of the file, as in a cloned machine, has nobody yet. */
interface Holder extends ProcessIdentity {
  readonly file: string;
}

const fileIdentity = (path: string): string => {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
};

/**
 * Opens the state for this process alone. The check and the claim are one write transaction,
 * which lmdb lets only one process at a time have, and which a killed process cannot keep.
 */
export const openState = (stateDir: string, self: ProcessIdentity): State => {
  privateDirectory(stateDir);
  const path = join(stateDir, "state.mdb");
  const db = open({ path, noSubdir: true });
  chmodSync(path, 0o600);
  const file = fileIdentity(path);
  let generation = 0;
  db.transactionSync(() => {
    const holder: Holder | undefined = db.get(HOLDER);
    if (holder !== undefined && holder.file === file && isSameProcess(holder)) {
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
    db.putSync(HOLDER, { ...self, file } satisfies Holder);
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
