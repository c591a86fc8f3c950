import { inTurns, oneByOne, percentile, throughput } from "./measure.js";
import { type Row, ratioRow } from "./report.js";
import type { World } from "./world.js";

const PAYLOAD = new Uint8Array(64);
const IN_FLIGHT = 64;

/** Our ping against a raw request to an echo subscriber, with the same client library. */
export const benchPing = async ({ raw, machine }: World): Promise<Row[]> => {
  const rawPing = (): Promise<unknown> => raw.request("bench.echo", PAYLOAD, { timeout: 5_000 });
  const ourPing = (): Promise<unknown> => machine.ping();
  await oneByOne(3_000, rawPing);
  await oneByOne(3_000, ourPing);
  const [rawTimes, ourTimes]: [number[], number[]] = [[], []];
  await inTurns(12, [
    async () => void rawTimes.push(...(await oneByOne(500, rawPing))),
    async () => void ourTimes.push(...(await oneByOne(500, ourPing))),
  ]);
  const [rawRates, ourRates]: [number[], number[]] = [[], []];
  await inTurns(7, [
    async () => void rawRates.push(await throughput(10_000, IN_FLIGHT, rawPing)),
    async () => void ourRates.push(await throughput(10_000, IN_FLIGHT, ourPing)),
  ]);
  const [rawP50, ourP50] = [percentile(rawTimes, 0.5), percentile(ourTimes, 0.5)];
  const [rawRate, ourRate] = [percentile(rawRates, 0.5), percentile(ourRates, 0.5)];
  return [
    { what: "raw NATS request, p50, one at a time", figure: `${rawP50.toFixed(3)} ms` },
    { what: "farhand ping, p50, one at a time", figure: `${ourP50.toFixed(3)} ms` },
    ratioRow("authenticated ping p50 / raw p50", ourP50 / rawP50, { atMost: 1.35 }),
    { what: `raw NATS requests, ${IN_FLIGHT} in flight`, figure: `${Math.round(rawRate)} /s` },
    { what: `farhand pings, ${IN_FLIGHT} in flight`, figure: `${Math.round(ourRate)} /s` },
    ratioRow("ping throughput / raw throughput", ourRate / rawRate, { atLeast: 0.7 }),
  ];
};
