import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** How the end of a whole tree is made sure of, as describe tells it. */
export const treeMethod = (platform: NodeJS.Platform = process.platform): string =>
  platform === "linux" ? "group+sweep" : "group";

/** Put into the environment of every command, so that descendants can be found wherever they hide. */
export const TREE_VARIABLE = "FARHAND_TREE";

export interface Tree {
  /** The leader's pid, which is its process group. */
  readonly pid: number;
  readonly tag: string;
}

const signalQuietly = (pid: number, signal: NodeJS.Signals): boolean => {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    // Gone already, or not ours any more (it changed its user): nothing more can be done with it.
    return false;
  }
};

export const groupIsAlive = (pid: number): boolean => {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
};

const NUMERIC = /^\d+$/;

const isZombie = async (pid: number): Promise<boolean> => {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch {
    return true;
  }
};

/** The living processes whose environment carries a tag that begins so. */
export const findTagged = async (tagPrefix: string): Promise<number[]> => {
  if (process.platform !== "linux") return [];
  const needle = `${TREE_VARIABLE}=${tagPrefix}`;
  const found: number[] = [];
  for (const name of await readdir("/proc")) {
    if (!NUMERIC.test(name) || Number(name) === process.pid) continue;
    const environ = await readFile(`/proc/${name}/environ`, "latin1").catch(() => "");
    if ((environ.startsWith(needle) || environ.includes(`\0${needle}`)) && !(await isZombie(Number(name)))) {
      found.push(Number(name));
    }
  }
  return found;
};

/** Signals the group at once and then whoever left it. */
export const signalTree = async (tree: Tree, signal: NodeJS.Signals): Promise<number> => {
  signalQuietly(-tree.pid, signal);
  const strays = await findTagged(tree.tag);
  for (const pid of strays) signalQuietly(pid, signal);
  return strays.length;
};

const KILL_ROUNDS = 20;
const POLL_MS = 20;

/** KILL until nobody is left: one who forks while being looked for is found in the next round. */
export const killTagged = async (tagPrefix: string): Promise<number> => {
  let ended = 0;
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const pids = await findTagged(tagPrefix);
    if (pids.length === 0) return ended;
    for (const pid of pids) if (signalQuietly(pid, "SIGKILL")) ended++;
    await sleep(POLL_MS);
  }
  return ended;
};

const isGone = async (tree: Tree): Promise<boolean> => {
  if (process.platform !== "linux") return !groupIsAlive(tree.pid);
  // Whoever is left in the group is tagged too, unless it cleared its environment.
  return (await findTagged(tree.tag)).length === 0 && !groupIsAlive(tree.pid);
};

/** TERM, a grace time that ends early when all have gone, then KILL. */
export const endTree = async (tree: Tree, graceMs: number): Promise<void> => {
  await signalTree(tree, "SIGTERM");
  const until = performance.now() + graceMs;
  while (performance.now() < until) {
    if (await isGone(tree)) return;
    await sleep(Math.min(POLL_MS, Math.max(1, until - performance.now())));
  }
  signalQuietly(-tree.pid, "SIGKILL");
  await killTagged(tree.tag);
};
