import * as z from "zod";
import { FarhandError } from "../../proto/farhand-error.js";
import { type ProcRun, type ProcRunResult, ProcEnd_Reason } from "../../proto/gen/process.js";
import { LIMITS } from "../../proto/limits.js";
import type { Clock } from "../clock.js";
import { bytes, readOptions } from "../options.js";
import { aborted } from "./aborted.js";
import { errnoFault } from "./file-faults.js";
import { keepBoth } from "./output.js";
import { plays, readEnd, type Script, type TestCommand } from "./script.js";
import { lookUp } from "./file-tree.js";
import type { VirtualFiles } from "./virtual-files.js";

const hasNoNul = z.string().refine((text) => !text.includes("\0"), "holds a NUL character");

const schema = z
  .object({
    argv: z.array(hasNoNul),
    shell: hasNoNul.optional(),
    cwd: hasNoNul,
    env: z.record(hasNoNul.regex(/^[^=]+$/, "is not a name for a variable"), hasNoNul),
  })
  .refine(
    ({ argv, shell }) => argv.length > 0 !== (shell !== undefined),
    "give either argv or shell, and one of them",
  );

const cwdOf = (args: ProcRun, files: VirtualFiles): string => {
  const cwd = files.at(args.cwd === "" ? "." : args.cwd);
  const subject = `the working directory ${cwd}`;
  const node = lookUp(files.tree, cwd, (errno) => errnoFault(errno, subject, { what: "cwd", cwd }));
  if (node.kind === "directory") return cwd;
  throw new FarhandError("invalid", `${subject} is not a directory`, {
    detail: { what: "cwd", cwd, errno: "ENOTDIR" },
  });
};

const unscripted = (args: ProcRun): FarhandError => {
  const asked = args.shell ?? args.argv;
  const command = args.argv[0] ?? args.shell ?? "";
  return new FarhandError(
    "not_found",
    `no script plays the command ${JSON.stringify(asked)}: add one to the test machine with onRun`,
    { detail: { what: "command", command, errno: "ENOENT" } },
  );
};

/** A script that says nonsense is a defect of the test, not of the request. */
const endOf = (given: unknown, line: string): ReturnType<typeof readEnd> => {
  try {
    return readEnd(given);
  } catch (error) {
    const says = error instanceof Error ? error.message : String(error);
    throw new Error(`the script for ${JSON.stringify(line)} returned no valid end: ${says}`, {
      cause: error,
    });
  }
};

type Ended = "timed_out" | "cancelled" | ReturnType<typeof readEnd>;

const toEnd = (ended: Ended): { reason: ProcEnd_Reason; exitCode: number | undefined; signal: string } => {
  const byTerm = { exitCode: undefined, signal: "SIGTERM" };
  if (ended === "timed_out") return { reason: ProcEnd_Reason.TIMED_OUT, ...byTerm };
  if (ended === "cancelled") return { reason: ProcEnd_Reason.CANCELLED, ...byTerm };
  const { signal, exitCode = 0 } = ended;
  if (signal === undefined) return { reason: ProcEnd_Reason.EXITED, exitCode, signal: "" };
  return { reason: ProcEnd_Reason.SIGNALLED, exitCode: undefined, signal };
};

export interface CommandContext {
  /** The first one that plays the command does. */
  readonly scripts: readonly Script[];
  readonly files: VirtualFiles;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly maxReplyBytes: number;
}

/** Plays a command to its end, its time limit or its cancellation. */
export const runCommand = async (
  args: ProcRun,
  { scripts, files, clock, signal, maxReplyBytes }: CommandContext,
): Promise<ProcRunResult> => {
  readOptions(schema, args);
  const line = args.shell ?? args.argv.join(" ");
  const argv = args.shell === undefined ? args.argv : undefined;
  const cwd = cwdOf(args, files);
  const script = scripts.find((one) => plays(one, { line, argv }));
  if (script === undefined) throw unscripted(args);

  const stdout: Uint8Array[] = [];
  const stderr: Uint8Array[] = [];
  const stop = new AbortController();
  const done = new AbortController();
  const command: TestCommand = {
    line,
    argv,
    cwd,
    env: args.env,
    stdin: new TextDecoder().decode(args.stdin),
    stdinBytes: args.stdin,
    signal: stop.signal,
    print: (output) => void stdout.push(readOptions(bytes, output)),
    printError: (output) => void stderr.push(readOptions(bytes, output)),
  };
  const play = async (): Promise<Ended> => {
    const end = endOf(await script.run(command), line);
    stdout.push(end.stdout);
    stderr.push(end.stderr);
    return end;
  };
  const startedAt = clock.monotonic();
  let ended: Ended;
  try {
    ended = await Promise.race([
      play(),
      clock
        .sleep(Number(args.timeoutMs ?? LIMITS.runTimeoutMs.default), done.signal)
        .then((): Ended => "timed_out"),
      aborted(signal, done.signal).then((): Ended => "cancelled"),
    ]);
  } finally {
    done.abort();
  }
  const printed = { stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr) };
  if (ended === "timed_out" || ended === "cancelled") stop.abort();
  const maxBytes = Number(args.maxOutputBytes ?? LIMITS.runOutputBytes.default);
  return {
    ...keepBoth(printed, { keep: args.keep, maxBytes, maxReplyBytes }),
    end: {
      ...toEnd(ended),
      durationMs: clock.monotonic() - startedAt,
      cpuMs: undefined,
      peakMemoryBytes: undefined,
    },
    envRemoved: [],
  };
};
