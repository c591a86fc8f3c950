import type { Command } from "commander";
import { setTimeout as sleep } from "node:timers/promises";
import { FarhandError } from "../../../proto/farhand-error.js";
import { farhandHome } from "../../../proto/home.js";
import { type AuthorityKeys, requireKeys } from "../../authority/keys.js";
import { resolveContext } from "../../context.js";
import type { OpenPlane } from "../../plane/plane.js";
import { inert, report, say, sayJson, warn } from "../output.js";
import { numberOf } from "../session.js";

interface Flags {
  url?: string;
  home?: string;
  ca?: string;
  replicas?: string;
  open?: boolean;
  json?: boolean;
}

const RETRY_MS = 1_000;

/** What no waiting can mend. */
const isBadAddress = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_INVALID_URL";

const messageOf = (error: unknown): string => inert(FarhandError.from(error).message);

interface Settings {
  readonly url: string;
  readonly caFile: string | undefined;
  readonly home: string;
  /** Absent on a bus without credentials of ours. */
  readonly keys: AuthorityKeys | undefined;
  readonly replicas: number | undefined;
}

const settingsOf = (flags: Flags): Settings => {
  const home = flags.home ?? farhandHome(process.env);
  const { url, caFile } = resolveContext({ url: flags.url, caFile: flags.ca }, process.env);
  return {
    url,
    caFile,
    home,
    keys: flags.open === true ? undefined : requireKeys(home),
    replicas: numberOf("--replicas", flags.replicas),
  };
};

/** Starts the plane as soon as the bus is there; says why it waits, once per reason. */
const startWhenReachable = async (
  { url, caFile, home, keys, replicas }: Settings,
  signal: AbortSignal,
): Promise<OpenPlane | undefined> => {
  const { startOpenPlane, startPlane } = await import("../../plane/plane.js");
  const onProblem = (error: unknown): void => warn(`farhand: ${messageOf(error)}`);
  const place = { servers: url.split(","), caFile, onProblem };
  let lastReason = "";
  while (!signal.aborted) {
    try {
      return await (keys === undefined
        ? startOpenPlane(place)
        : startPlane({ ...place, keys, home, replicas }));
    } catch (error) {
      if (isBadAddress(error))
        throw new FarhandError("invalid", `${JSON.stringify(url)} is not the address of a nats-server`, {
          advice: "write it as nats://host:port",
        });
      const reason = messageOf(error);
      if (reason !== lastReason) warn(`farhand: waiting for the bus at ${inert(url)}: ${reason}`);
      lastReason = reason;
    }
    await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
  }
  return undefined;
};

const run = async (flags: Flags): Promise<number> => {
  const settings = settingsOf(flags);
  const { url, keys } = settings;
  const stop = new AbortController();
  const stopped = new Promise<undefined>((resolve) =>
    stop.signal.addEventListener("abort", () => resolve(undefined), { once: true }),
  );
  process.on("SIGINT", () => stop.abort());
  process.on("SIGTERM", () => stop.abort());
  // A dial that hangs must not hold up a stop.
  const plane = await Promise.race([startWhenReachable(settings, stop.signal), stopped]);
  if (plane === undefined) return 0;
  if (flags.json === true) sayJson({ url, pid: process.pid, issuesIdentities: keys !== undefined });
  else say(`the control plane serves on ${inert(url)}; Ctrl-C stops it`);
  await stopped;
  await plane.close();
  if (flags.json !== true) say("stopped.");
  return 0;
};

export const addPlane = (program: Command): void => {
  program
    .command("plane")
    .description("run the control plane alone, on a bus that runs elsewhere")
    .option("--url <url>", "nats-server to use, several with commas (FARHAND_URL)")
    .option("--home <dir>", "data directory with the authority (FARHAND_HOME)")
    .option("--json", "print one JSON object when it serves")
    .addHelpText(
      "after",
      `
It waits until the bus is there, and for it again whenever it is lost. Several may run on one bus.
farhand up has a control plane of its own: this command is for a bus that something else keeps running.

Examples:
  farhand plane --url nats://127.0.0.1:4222
  FARHAND_URL=nats://nats:4222 farhand plane`,
    )
    .action(async (flags: Flags) =>
      process.exit(await run(flags).catch((error: unknown) => report(error, flags.json === true))),
    );
};
