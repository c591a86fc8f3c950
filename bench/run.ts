import { spawn } from "node:child_process";
import { once } from "node:events";
import { inTurns, oneByOne, percentile } from "./measure.js";
import { type Row, ratioRow } from "./report.js";
import type { World } from "./world.js";

const PAYLOAD = new Uint8Array(64);

/** A remote /bin/true against what it is made of: a round trip and a local spawn. */
export const benchRun = async ({ raw, machine, sandboxAgentUrl }: World): Promise<Row[]> => {
  const roundTrip = (): Promise<unknown> => raw.request("bench.echo", PAYLOAD, { timeout: 5_000 });
  const localSpawn = (): Promise<unknown> =>
    once(spawn("/bin/true", [], { stdio: ["ignore", "pipe", "pipe"], detached: true }), "close");
  const ours = (): Promise<unknown> => machine.commands.run(["/bin/true"]);
  const theirs = async (): Promise<unknown> => {
    const response = await fetch(`${sandboxAgentUrl}/v1/processes/run`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ command: "/bin/true", args: [] }),
    });
    if (!response.ok) throw new Error(`sandbox-agent: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const calls = [roundTrip, localSpawn, ours, ...(sandboxAgentUrl === undefined ? [] : [theirs])];
  const times: number[][] = calls.map(() => []);
  for (const call of calls) await oneByOne(50, call);
  await inTurns(
    10,
    calls.map((call, at) => async () => void times[at]?.push(...(await oneByOne(60, call)))),
  );
  const [rtt = 0, local = 0, run = 0, sandboxAgent] = times.map((list) => percentile(list, 0.5));
  return [
    { what: "raw NATS round trip, p50", figure: `${rtt.toFixed(2)} ms` },
    { what: "local spawn of /bin/true, p50", figure: `${local.toFixed(2)} ms` },
    { what: "farhand run of /bin/true, p50", figure: `${run.toFixed(2)} ms` },
    ratioRow("run / (round trip + spawn)", run / (rtt + local), { atMost: 1.35 }),
    {
      what: "sandbox-agent /v1/processes/run of /bin/true, p50",
      figure: sandboxAgent === undefined ? "not installed" : `${sandboxAgent.toFixed(2)} ms`,
    },
  ];
};
