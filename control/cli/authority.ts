import { FarhandError } from "../../proto/farhand-error.js";
import { farhandHome } from "../../proto/home.js";
import type { OpenAuthority } from "../authority/authority.js";
import { resolveContext } from "../context.js";
import { inert, report, warn } from "./output.js";
import type { CommonFlags } from "./session.js";

/** Where the commands find the keys and the bus that they act on. */
export interface AuthorityPlace {
  readonly home: string;
  readonly servers: readonly string[];
  readonly caFile: string | undefined;
}

export const authorityPlace = (flags: CommonFlags): AuthorityPlace => {
  const { url, caFile } = resolveContext({ url: flags.url, caFile: flags.ca }, process.env);
  return { home: farhandHome(process.env), servers: url.split(","), caFile };
};

/** Runs a command that issues or revokes identities, where the authority's keys are. */
export const withAuthority = async (
  flags: CommonFlags,
  use: (authority: OpenAuthority, place: AuthorityPlace) => Promise<number | void>,
): Promise<void> => {
  let authority: OpenAuthority | undefined;
  try {
    const place = authorityPlace(flags);
    const { openAuthority } = await import("../authority/authority.js");
    authority = await openAuthority(place, (error) =>
      warn(`farhand: ${inert(FarhandError.from(error).message)}`),
    );
    process.exitCode = (await use(authority, place)) ?? 0;
  } catch (error) {
    process.exitCode = report(busFault(error), flags.json === true);
  } finally {
    await authority?.close();
  }
};

/** What the transport throws when there is no bus, as the one error that says so. */
const busFault = (error: unknown): unknown => {
  if (error instanceof FarhandError) return error;
  const isTransport =
    error instanceof Error && /ConnectionError|AuthorizationError|TimeoutError/.test(error.constructor.name);
  if (!isTransport) return error;
  return new FarhandError("control_unavailable", `the bus cannot be reached: ${error.message}`, {
    cause: error,
  });
};

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads a time such as 30m, 12h or 90d. */
export const durationOf = (option: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const [, count, unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
  if (!Number.isSafeInteger(ms) || ms < 1) {
    throw new FarhandError(
      "invalid",
      `${option}: ${JSON.stringify(text)} is not a time such as 30m, 12h or 90d`,
    );
  }
  return ms;
};

export const when = (ms: number | undefined): string =>
  ms === undefined ? "never" : `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
