import type { Command } from "commander";
import { setTimeout as sleep } from "node:timers/promises";
import { FarhandError } from "../../../proto/farhand-error.js";
import { faultRow } from "../../../proto/faults.js";
import { onOut, say, sayJson } from "../output.js";
import { type CommonFlags, numberOf, untilInterrupted, withFarhand } from "../session.js";

interface Flags extends CommonFlags {
  count?: string;
  interval?: string;
  timeout?: string;
}

const DEFAULT_INTERVAL_S = 1;
const DEFAULT_TIMEOUT_S = 5;

const summary = (times: number[], sent: number) => {
  const sum = times.reduce((total, time) => total + time, 0);
  const avg = times.length === 0 ? 0 : sum / times.length;
  const mdev =
    times.length === 0
      ? 0
      : Math.sqrt(times.reduce((total, time) => total + (time - avg) ** 2, 0) / times.length);
  return { sent, received: times.length, min: Math.min(...times), avg, max: Math.max(...times), mdev };
};

const ms = (value: number): string => value.toFixed(3);

export const addPing = (program: Command): void => {
  program
    .command("ping <machine>")
    .description("measure round trips to a machine until Ctrl-C")
    .option("-c, --count <n>", "stop after this many")
    .option("-i, --interval <seconds>", `between two of them (default ${DEFAULT_INTERVAL_S})`)
    .option("-W, --timeout <seconds>", `wait this long for each answer (default ${DEFAULT_TIMEOUT_S})`)
    .addHelpText("after", "\nExamples:\n  farhand ping local\n  farhand ping -c 5 -i 0.2 acme/build-box")
    .action((name: string, _flags: unknown, command: Command) => {
      const flags: Flags = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const count = numberOf("--count", flags.count) ?? Infinity;
        const intervalMs = (numberOf("--interval", flags.interval) ?? DEFAULT_INTERVAL_S) * 1000;
        const timeoutMs = (numberOf("--timeout", flags.timeout) ?? DEFAULT_TIMEOUT_S) * 1000;
        const machine = farhand.machine(name);
        const label = `${machine.workspace}/${machine.name}`;
        const { signal, done } = untilInterrupted();
        const times: number[] = [];
        let sent = 0;
        let lastExit = 1;
        while (sent < count && !signal.aborted) {
          const seq = ++sent;
          try {
            const time = await machine.ping({ timeoutMs, signal });
            times.push(time);
            if (flags.json === true) sayJson({ seq, timeMs: time });
            else say(`answer from ${label}: seq=${seq} time=${ms(time)} ms`);
          } catch (error) {
            if (signal.aborted) {
              sent--;
              break;
            }
            const fault = FarhandError.from(error);
            if (fault.code === "invalid") throw fault;
            lastExit = faultRow(fault.code).exit;
            if (flags.json === true) sayJson({ seq, error: fault.code, message: fault.message });
            else say(`${onOut("yellow", fault.code)}: seq=${seq} ${fault.message}`);
          }
          if (sent < count) await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
        }
        done();
        const { received, min, avg, max, mdev } = summary(times, sent);
        const loss = sent === 0 ? 0 : Math.round(((sent - received) / sent) * 100);
        if (flags.json === true) {
          sayJson({
            machine: label,
            sent,
            received,
            lossPercent: loss,
            ...(received === 0 ? {} : { minMs: min, avgMs: avg, maxMs: max, mdevMs: mdev }),
          });
        } else {
          say(`\n--- ${label} ping statistics ---`);
          say(`${sent} sent, ${received} answered, ${loss}% without answer`);
          if (received > 0)
            say(`round trip min/avg/max/mdev = ${[min, avg, max, mdev].map(ms).join("/")} ms`);
        }
        return received > 0 || sent === 0 ? 0 : lastExit;
      });
    });
};
