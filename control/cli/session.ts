import { FarhandError } from "../../proto/farhand-error.js";
import { connect } from "../connect.js";
import type { Farhand } from "../farhand.js";
import type { Machine } from "../machine.js";
import { report } from "./output.js";

/** Options that every command has. */
export interface CommonFlags {
  readonly url?: string;
  readonly workspace?: string;
  readonly creds?: string;
  readonly ca?: string;
  readonly json?: boolean;
}

/** Runs a command with a client, and turns whatever it throws into a message and an exit code. */
export const withFarhand = async (
  flags: CommonFlags,
  use: (farhand: Farhand) => Promise<number | void>,
): Promise<void> => {
  let farhand: Farhand | undefined;
  try {
    farhand = await connect({
      url: flags.url,
      workspace: flags.workspace,
      creds: flags.creds,
      caFile: flags.ca,
    });
    process.exitCode = (await use(farhand)) ?? 0;
  } catch (error) {
    process.exitCode = report(error, flags.json === true);
  } finally {
    await farhand?.close();
  }
};

export interface Place {
  readonly machine: Machine;
  readonly path: string;
}

/** Reads `machine:path` or `workspace/machine:path`. */
export const placeOf = (farhand: Farhand, text: string): Place => {
  const colon = text.indexOf(":");
  if (colon < 0) {
    throw new FarhandError("invalid", `${JSON.stringify(text)} names no path`, {
      advice: "write it as machine:path, for example local:/tmp",
    });
  }
  return { machine: farhand.machine(text.slice(0, colon)), path: text.slice(colon + 1) || "." };
};

/** A number given on the command line, or `invalid` with the option's name. */
export const numberOf = (option: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value))
    throw new FarhandError("invalid", `${option}: ${JSON.stringify(text)} is not a number`);
  return value;
};

export const modeOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  if (!/^[0-7]{1,4}$/.test(text))
    throw new FarhandError("invalid", `${JSON.stringify(text)} is not an octal mode such as 644`);
  return Number.parseInt(text, 8);
};

export const readStdin = async (): Promise<Uint8Array> => {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
};

/** Aborted by Ctrl-C or TERM, so that what runs on the machine ends too. */
export const untilInterrupted = (): { signal: AbortSignal; done(): void } => {
  const controller = new AbortController();
  const onSignal = (): void => controller.abort();
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  return {
    signal: controller.signal,
    done() {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
    },
  };
};
