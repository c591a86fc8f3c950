import { createHash } from "node:crypto";
import { FarhandError } from "../../../proto/farhand-error.js";
import { LIMITS } from "../../../proto/limits.js";
import { absolutePath } from "../files/paths.js";
import { inheritedEnvironment } from "./environment.js";
import { type RunOutcome, type RunRequest, runCommand } from "./run.js";
import { killTagged, treeMethod } from "./tree.js";

export type RunSpec = Omit<RunRequest, "tag" | "inherited">;

/** The machine's commands, as ops may run them. */
export interface Processes {
  readonly treeMethod: string;
  run(spec: RunSpec): Promise<RunOutcome>;
  /** Ends what an earlier agent with the same state, killed in the middle, left behind. */
  endLeftovers(): Promise<number>;
  /** Waits until every tree that is being ended has gone. */
  settled(): Promise<void>;
}

export interface ProcessesOptions {
  readonly root: string;
  /** Tells this agent's commands from those of other agents on the machine. */
  readonly stateDir: string;
  readonly instanceId: string;
}

export const createProcesses = ({ root, stateDir, instanceId }: ProcessesOptions): Processes => {
  const owner = createHash("sha256").update(stateDir).digest("hex").slice(0, 16);
  const inherited = inheritedEnvironment(process.env);
  const ending = new Set<Promise<void>>();
  let running = 0;
  let count = 0;

  const keepTrack = (treeEnded: Promise<void>): void => {
    const tracked: Promise<void> = treeEnded.finally(() => ending.delete(tracked));
    ending.add(tracked);
  };

  return {
    treeMethod: treeMethod(),
    async run(spec) {
      if (running >= LIMITS.processes) {
        throw new FarhandError(
          "busy",
          `${running} commands run already, and ${LIMITS.processes} is the limit`,
          {
            detail: { running: String(running), limit: String(LIMITS.processes) },
          },
        );
      }
      running++;
      try {
        const tag = `${owner}:${instanceId}:${++count}`;
        const outcome = await runCommand({
          ...spec,
          inherited,
          cwd: absolutePath(root, spec.cwd),
          tag: `${tag};`,
        });
        keepTrack(outcome.treeEnded);
        return outcome;
      } finally {
        running--;
      }
    },
    endLeftovers: () => killTagged(`${owner}:`),
    async settled() {
      await Promise.allSettled(ending);
    },
  };
};
