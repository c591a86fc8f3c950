import { setTimeout as sleep } from "node:timers/promises";
import { FarhandError } from "../../proto/farhand-error.js";
import { AGENT_EXIT } from "../../proto/limits.js";
import type { Child } from "./child.js";

const STOP_MS = 15_000;
const RESTART_MS = 1_000;

/** After these a new start would end the same way. */
const FINAL_EXITS: ReadonlySet<number | string> = new Set([
  AGENT_EXIT.alreadyRunning,
  AGENT_EXIT.superseded,
  AGENT_EXIT.usage,
  AGENT_EXIT.revoked,
  AGENT_EXIT.notJoined,
]);

/** Keeps a child running until told to stop: one that ends by itself is started again. */
export const supervise = async (options: {
  name: string;
  start: () => Promise<Child>;
  say: (line: string) => void;
  onFinal: (line: string, how?: number | string) => void;
}): Promise<{ stop(): Promise<void> }> => {
  let current = await options.start();
  let isStopping = false;
  const watch = async (): Promise<void> => {
    while (!isStopping) {
      const how = await current.exited;
      if (isStopping) return;
      if (FINAL_EXITS.has(how))
        return options.onFinal(`${options.name} ended with code ${how} and is not started again`, how);
      options.say(`${options.name} ended (${how}); starting it again`);
      await sleep(RESTART_MS);
      if (!isStopping) current = await options.start();
    }
  };
  void watch().catch((error: unknown) =>
    options.onFinal(`${options.name} could not be started again: ${FarhandError.from(error).message}`),
  );
  return {
    async stop() {
      isStopping = true;
      await current.stop(STOP_MS);
    },
  };
};
