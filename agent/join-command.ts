import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { join as joinPath } from "node:path";
import { FarhandError } from "../proto/farhand-error.js";
import { parseJoinToken, type JoinToken } from "../proto/join-token.js";
import { LIMITS } from "../proto/limits.js";
import { checkId, formatMachineRef, inboxPrefix, subjects } from "../proto/subjects.js";
import { stateDirectory } from "./config.js";
import { identify } from "./host/processes/identity.js";
import { type Identity, readIdentity, removeIdentity, writeIdentity } from "./identity/identity.js";
import { join, type Joined } from "./identity/join.js";
import { chooseName } from "./identity/machine-name.js";
import { readToken } from "./identity/token-input.js";
import { openState } from "./store/state.js";
import { askPlane } from "./wire/plane.js";

export interface JoinFlags {
  readonly tokenFile?: string | undefined;
  readonly name?: string | undefined;
  readonly state?: string | undefined;
  readonly force?: boolean | undefined;
}

const tell = (line: string): void => void process.stderr.write(`farhand-agent: ${line}\n`);

/** What the state directory has of an earlier join; a damaged identity can only be replaced. */
const earlierIdentity = (stateDir: string, force: boolean): Identity | undefined => {
  try {
    return readIdentity(stateDir);
  } catch (error) {
    if (!force) throw error;
    tell("the identity of this machine cannot be read, and is replaced");
    return undefined;
  }
};

const describe = (identity: Identity): string => {
  const { joinedMs, revokedMs } = identity;
  const since = `joined at ${new Date(joinedMs).toISOString()}`;
  const end = revokedMs === undefined ? "" : `, revoked at ${new Date(revokedMs).toISOString()}`;
  return `${formatMachineRef(identity)} (${since}${end})`;
};

const checkReplaceable = (earlier: Identity | undefined, force: boolean): void => {
  if (earlier === undefined) return;
  if (!force) {
    throw new FarhandError("conflict", `this machine has joined already, as ${describe(earlier)}`, {
      advice: "to replace that, join with --force; to serve with it, run farhand-agent run",
    });
  }
  tell(`replacing ${describe(earlier)}, with its journal and fences`);
};

/** A new identity inherits nothing, and there is no moment at which it could. */
const replaceIdentity = (stateDir: string, identity: Identity): void => {
  removeIdentity(stateDir);
  for (const store of ["journal.mdb", "state.mdb"]) {
    for (const file of [store, `${store}-lock`]) rmSync(joinPath(stateDir, file), { force: true });
  }
  writeIdentity(stateDir, identity);
};

const redeem = (token: JoinToken, options: { name: string | undefined; force: boolean }): Promise<Joined> => {
  const machine = chooseName({ given: options.name, bound: token.machine, hostname: hostname() });
  const workspace = checkId("workspace", token.workspace);
  return join({
    token,
    ref: { workspace, machine },
    replace: options.force,
    hostname: hostname(),
    now: Date.now,
    ask: (request, { publicKey, seed }) =>
      askPlane(
        {
          servers: token.servers,
          ca: token.ca,
          credential: { kind: "jwt", jwt: () => token.jwt, seed },
          name: `join/${machine}`,
          inboxPrefix: inboxPrefix.join(publicKey),
        },
        subjects.redeem(workspace),
        request,
      ),
  });
};

const warnOfClock = (clockAheadMs: number): void => {
  if (Math.abs(clockAheadMs) <= LIMITS.clockToleranceMs) return;
  const here = Date.now();
  const [mine, theirs] = [here, here + clockAheadMs].map((ms) => new Date(ms).toISOString());
  tell(`the clocks differ: it is ${mine} here and ${theirs} at the control plane; set the one that is wrong`);
};

/** Makes this machine a member of a workspace; on any failure everything is as it was. */
export const joinCommand = async (argument: string | undefined, flags: JoinFlags): Promise<void> => {
  const { name, force = false } = flags;
  const token = parseJoinToken(readToken(argument, flags.tokenFile));
  if (argument !== undefined) {
    tell(
      "the token was in the process list for a moment; --token-file <file>, or - for standard input, avoids that",
    );
  }
  const stateDir = stateDirectory(flags.state, process.env);
  checkReplaceable(earlierIdentity(stateDir, force), force);
  const state = openState(stateDir, identify(process.pid));
  let joined: Joined;
  try {
    joined = await redeem(token, { name, force });
  } finally {
    await state.close();
  }
  replaceIdentity(stateDir, joined.identity);
  warnOfClock(joined.clockAheadMs);
  tell(`joined as ${formatMachineRef(joined.identity)}`);
};
