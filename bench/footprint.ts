import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuMs, rssMb } from "./measure.js";
import type { Row } from "./report.js";
import type { World } from "./world.js";

/** The engine tidies up after the start; idle is what comes then. */
const SETTLE_MS = 25_000;
const AFTER_MS = 5_000;
const IDLE_MS = 20_000;
const FILE_MB = 200;

const atMost = (value: number, limit: number, unit: string): { text: string; met: boolean } => ({
  text: `≤ ${limit} ${unit}`,
  met: value <= limit,
});

/** What the agent costs the machine it runs on. Taken first, before anything else was asked of it. */
export const benchFootprint = async ({ agentPid, agentReadyMs, machine, root }: World): Promise<Row[]> => {
  await sleep(SETTLE_MS);
  const idleRss = rssMb(agentPid);
  const cpuBefore = cpuMs(agentPid);
  await sleep(IDLE_MS);
  const idleCpu = ((cpuMs(agentPid) - cpuBefore) / IDLE_MS) * 100;

  const fd = openSync(join(root, "large"), "w");
  const block = Buffer.alloc(1024 * 1024, 7);
  for (let at = 0; at < FILE_MB; at++) writeSync(fd, block);
  closeSync(fd);
  let bytes = 0;
  let peakRss = 0;
  for await (const part of await machine.files.read("large", { format: "stream" })) {
    bytes += part.length;
    if (bytes % (8 * 1024 * 1024) < part.length) peakRss = Math.max(peakRss, rssMb(agentPid));
  }
  if (bytes !== FILE_MB * block.length) throw new Error(`read ${bytes} bytes`);
  await sleep(AFTER_MS);
  const grown = rssMb(agentPid) - idleRss;
  return [
    {
      what: "agent ready after its start",
      figure: `${Math.round(agentReadyMs)} ms`,
      goal: atMost(agentReadyMs, 500, "ms"),
    },
    { what: "agent idle memory (RSS)", figure: `${idleRss.toFixed(1)} MB`, goal: atMost(idleRss, 75, "MB") },
    {
      what: `agent idle processor, over ${IDLE_MS / 1000} s`,
      figure: `${idleCpu.toFixed(2)} %`,
      goal: atMost(idleCpu, 0.5, "%"),
    },
    {
      what: "RSS above idle during that, at most",
      figure: `${(peakRss - idleRss).toFixed(1)} MB`,
    },
    {
      what: `RSS above idle after ${FILE_MB} MB were read in ranges`,
      figure: `${grown.toFixed(1)} MB`,
      goal: atMost(grown, 30, "MB"),
    },
  ];
};
