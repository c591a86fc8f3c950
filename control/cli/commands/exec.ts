import type { Command } from "commander";
import { constants } from "node:os";
import { FarhandError } from "../../../proto/farhand-error.js";
import type { RunResult } from "../../commands.js";
import { onErr, sayJson, warn } from "../output.js";
import { type CommonFlags, numberOf, readStdin, untilInterrupted, withFarhand } from "../session.js";

interface Flags extends CommonFlags {
  cwd?: string;
  env: string[];
  stdin?: boolean;
  shell?: boolean;
  timeout?: string;
  maxOutput?: string;
  keep?: "head" | "tail" | "head_tail";
}

const TIMED_OUT = 124;
const INTERRUPTED = 130;
const BY_SIGNAL = 128;

const environment = (pairs: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new FarhandError("invalid", `--env: ${JSON.stringify(pair)} is not NAME=value`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );

const exitCodeOf = ({ reason, exitCode, signal }: RunResult): number => {
  if (reason === "timed_out") return TIMED_OUT;
  if (reason === "cancelled") return INTERRUPTED;
  if (signal !== null)
    return BY_SIGNAL + (Object.entries(constants.signals).find(([name]) => name === signal)?.[1] ?? 0);
  return exitCode ?? 1;
};

const write = (stream: NodeJS.WriteStream, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve) => void stream.write(bytes, () => resolve()));

const remarks = (result: RunResult): string[] => [
  ...(result.reason === "timed_out"
    ? [`the command was ended after ${(result.durationMs / 1000).toFixed(1)} s; --timeout allows more`]
    : []),
  ...(result.stdoutTruncated
    ? [`stdout is cut: ${result.stdoutBytes.length} of ${result.stdoutTotalBytes} bytes`]
    : []),
  ...(result.stderrTruncated
    ? [`stderr is cut: ${result.stderrBytes.length} of ${result.stderrTotalBytes} bytes`]
    : []),
  ...(result.envRemoved.length > 0
    ? [`the machine does not let callers set ${result.envRemoved.join(", ")}`]
    : []),
];

export const addExec = (program: Command): void => {
  program
    .command("exec <machine> <command...>")
    .description("run a command on a machine; output and exit code pass through")
    .option("-C, --cwd <dir>", "where to run it, relative to the machine's root")
    .option(
      "-e, --env <name=value>",
      "set a variable (again for more)",
      (pair: string, before: string[]) => [...before, pair],
      [],
    )
    .option("-i, --stdin", "send standard input to it")
    .option("-s, --shell", "run the words as one line of the machine's shell")
    .option("-t, --timeout <seconds>", "end it after this long (default 30, at most 300)")
    .option("--max-output <bytes>", "keep this much of each output")
    .option("--keep <part>", "which part of a longer output to keep: head, tail or head_tail")
    .passThroughOptions()
    .addHelpText(
      "after",
      `
Exit codes: the command's own; 128 + n after signal n; 124 after the time limit; 64 to 89 for
farhand's own failures (docs/faults.md).

Examples:
  farhand exec local -- uname -a
  farhand exec --shell build-box -- 'make -j4 2>&1 | tail -5'
  tar c src | farhand exec -i build-box -- tar x -C /srv`,
    )
    .action((name: string, given: string[], _flags: unknown, command: Command) => {
      const flags: Flags = command.optsWithGlobals();
      // Options of the command itself pass through, and with them the mark that ends ours.
      const words = given[0] === "--" ? given.slice(1) : given;
      return withFarhand(flags, async (farhand) => {
        const seconds = numberOf("--timeout", flags.timeout);
        const { signal, done } = untilInterrupted();
        const result = await farhand
          .machine(name)
          .commands.run(flags.shell === true ? words.join(" ") : words, {
            cwd: flags.cwd,
            env: environment(flags.env),
            ...(flags.stdin === true ? { stdin: await readStdin() } : {}),
            timeoutMs: seconds === undefined ? undefined : Math.round(seconds * 1000),
            maxOutputBytes: numberOf("--max-output", flags.maxOutput),
            keep: flags.keep,
            signal,
          })
          .finally(done);
        if (flags.json === true) {
          const { stdoutBytes, stderrBytes, ...rest } = result;
          sayJson({
            ...rest,
            stdoutBase64: Buffer.from(stdoutBytes).toString("base64"),
            stderrBase64: Buffer.from(stderrBytes).toString("base64"),
          });
        } else {
          await write(process.stdout, result.stdoutBytes);
          await write(process.stderr, result.stderrBytes);
          for (const remark of remarks(result)) warn(`${onErr("yellow", "farhand:")} ${remark}`);
        }
        return exitCodeOf(result);
      });
    });
};
