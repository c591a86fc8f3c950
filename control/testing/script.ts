import * as z from "zod";
import { bytes, readOptions } from "../options.js";

/** A command that was asked for, as its script sees it. */
export interface TestCommand {
  /** The shell line, or the list joined by spaces. */
  readonly line: string;
  /** Undefined for a shell line. */
  readonly argv: readonly string[] | undefined;
  /** Absolute. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly stdinBytes: Uint8Array;
  /** Aborted when the caller cancels, or when the command's time is up. */
  readonly signal: AbortSignal;
  /** Output before the end, which is kept when the command does not get to its end. */
  print(output: string | Uint8Array): void;
  printError(output: string | Uint8Array): void;
}

/** How a command ends: with exit code 0 and no more output, where nothing else is said. */
export interface ScriptedEnd {
  readonly stdout?: string | Uint8Array | undefined;
  readonly stderr?: string | Uint8Array | undefined;
  readonly exitCode?: number | undefined;
  /** The signal that ended it, in place of an exit code. */
  readonly signal?: string | undefined;
}

/** Plays a command. A FarhandError that it throws is what the machine answers. */
export type RunScript = (command: TestCommand) => ScriptedEnd | Promise<ScriptedEnd>;

/** A whole shell line, a whole list of arguments, or a pattern that `line` must match. */
export type CommandMatch = string | readonly string[] | RegExp;

export interface Script {
  readonly match: CommandMatch | undefined;
  readonly run: RunScript;
}

const endSchema = z
  .strictObject({
    stdout: bytes.default(new Uint8Array()),
    stderr: bytes.default(new Uint8Array()),
    exitCode: z.int("is not a whole number").min(0).max(255).optional(),
    signal: z
      .string()
      .regex(/^SIG[A-Z0-9]+$/, "is not a name like SIGKILL")
      .optional(),
  })
  .refine(
    ({ exitCode, signal }) => exitCode === undefined || signal === undefined,
    "exitCode and signal exclude each other",
  );

const matchSchema = z.union(
  [
    z.string().min(1, "the match is empty"),
    z.array(z.string()).min(1, "the match is empty"),
    z.instanceof(RegExp),
  ],
  "the match is neither a shell line, nor a list of arguments, nor a pattern",
);

const scriptSchema = z.custom<RunScript>(
  (given) => typeof given === "function",
  "the script is neither a function nor an end",
);

export const readEnd = (given: unknown): z.output<typeof endSchema> => readOptions(endSchema, given);

/** Reads what was given to onRun. */
export const readScript = (
  given: readonly [RunScript] | readonly [CommandMatch, RunScript | ScriptedEnd],
): Script => {
  if (given.length === 1) return { match: undefined, run: readOptions(scriptSchema, given[0]) };
  const [match, script] = given;
  readOptions(matchSchema, match);
  if (typeof script === "function") return { match, run: script };
  readEnd(script);
  return { match, run: () => script };
};

/** Whether a script is for a command, given as its shell line or its list of arguments. */
export const plays = ({ match }: Script, { line, argv }: Pick<TestCommand, "line" | "argv">): boolean => {
  if (match === undefined) return true;
  if (match instanceof RegExp) return line.search(match) >= 0;
  if (typeof match === "string") return argv === undefined && line === match;
  return argv?.length === match.length && match.every((argument, at) => argv[at] === argument);
};
