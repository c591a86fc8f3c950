import { inTurns, oneByOne, percentile, throughput } from "./measure.js";
import { type Row, ratioRow } from "./report.js";
import type { World } from "./world.js";

const PAYLOAD = new Uint8Array(64);
const IN_FLIGHT = 64;

const ms = (value: number): string => `${value.toFixed(3)} ms`;
const perSecond = (value: number): string => `${Math.round(value)} /s`;

/** Our ping against a raw request to an echo subscriber, with the same client library. */
export const benchPing = async ({ raw, machine, plainMachine }: World): Promise<Row[]> => {
  const calls = [
    () => raw.request("bench.echo", PAYLOAD, { timeout: 5_000 }),
    () => plainMachine.ping(),
    () => machine.ping(),
  ];
  for (const call of calls) await oneByOne(3_000, call);
  const times: number[][] = calls.map(() => []);
  await inTurns(
    12,
    calls.map((call, at) => async () => void times[at]?.push(...(await oneByOne(500, call)))),
  );
  const rates: number[][] = calls.map(() => []);
  await inTurns(
    7,
    calls.map((call, at) => async () => void rates[at]?.push(await throughput(10_000, IN_FLIGHT, call))),
  );
  const [rawP50 = 0, plainP50 = 0, authenticP50 = 0] = times.map((list) => percentile(list, 0.5));
  const [rawRate = 0, plainRate = 0, authenticRate = 0] = rates.map((list) => percentile(list, 0.5));
  return [
    { what: "raw NATS request, p50, one at a time", figure: ms(rawP50) },
    { what: "ping with `--auth bus`, p50", figure: ms(plainP50) },
    { what: "authenticated ping, p50", figure: ms(authenticP50) },
    ratioRow("ping with `--auth bus` / raw, p50", plainP50 / rawP50, { atMost: 1.25 }),
    ratioRow("authenticated ping / raw, p50", authenticP50 / rawP50, { atMost: 1.35 }),
    { what: `raw NATS requests, ${IN_FLIGHT} in flight`, figure: perSecond(rawRate) },
    { what: `pings with \`--auth bus\`, ${IN_FLIGHT} in flight`, figure: perSecond(plainRate) },
    { what: `authenticated pings, ${IN_FLIGHT} in flight`, figure: perSecond(authenticRate) },
    ratioRow("throughput of pings with `--auth bus` / raw", plainRate / rawRate, { atLeast: 0.7 }),
    { what: "throughput of authenticated pings / raw", figure: `${(authenticRate / rawRate).toFixed(2)}×` },
  ];
};
