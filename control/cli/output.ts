import { styleText } from "node:util";
import { FarhandError } from "../../proto/farhand-error.js";
import { faultRow } from "../../proto/faults.js";
import { CommandExitError } from "../commands.js";

type Style = Parameters<typeof styleText>[0];

/** Colours only where a person looks at a terminal. */
const paint = (stream: NodeJS.WriteStream, style: Style, text: string): string =>
  stream.isTTY && process.env["NO_COLOR"] === undefined ? styleText(style, text) : text;

export const onOut = (style: Style, text: string): string => paint(process.stdout, style, text);
export const onErr = (style: Style, text: string): string => paint(process.stderr, style, text);

/** Control characters from a machine (file names, host names) must not reach the terminal as such. */
export const inert = (text: string): string =>
  text.replace(
    // oxlint-disable-next-line no-control-regex
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

export const say = (line: string): void => void process.stdout.write(`${line}\n`);
export const warn = (line: string): void => void process.stderr.write(`${line}\n`);
export const sayJson = (value: unknown): void => say(JSON.stringify(value));

/** Columns as wide as their widest cell; the first `rightAligned` ones are numbers. */
export const table = (
  rows: readonly (readonly string[])[],
  rightAligned: ReadonlySet<number> = new Set(),
): string[] => {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, cell.length)));
  return rows.map((row) =>
    row
      .map((cell, at) =>
        rightAligned.has(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
};

/** An error as a person or, with `--json`, a script reads it; returns the exit code. */
export const report = (thrown: unknown, json: boolean): number => {
  if (thrown instanceof CommandExitError) {
    warn(thrown.message);
    return thrown.result.exitCode ?? 1;
  }
  if (thrown instanceof Error && thrown.name === "AbortError") return 130;
  const error = FarhandError.from(thrown);
  if (json) {
    const { code, message, reason, ran, retryable, machine, requestId, detail, advice } = error;
    warn(
      JSON.stringify({
        error: { code, message, reason, ran, retryable, machine, requestId, detail, advice },
      }),
    );
  } else {
    warn(`${onErr("red", "farhand:")} ${inert(error.message)}`);
    warn(`  ${onErr("dim", `${error.code}: ${error.advice}`)}`);
    if (error.ran === "maybe") warn(`  ${onErr("yellow", "it is not known whether the request ran")}`);
  }
  return faultRow(error.code).exit;
};
