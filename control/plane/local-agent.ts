import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { FarhandError } from "../../proto/farhand-error.js";
import { signingKeyFromSeed } from "../../proto/nkey.js";
import type { Authority } from "../authority/authority.js";
import { createCredential } from "../authority/creds.js";
import { replacePrivateFile } from "../authority/private-file.js";
import { recordKey } from "../authority/records.js";
import { createToken } from "../authority/tokens.js";
import { type Credentials, readCredentials } from "../credentials.js";
import { createFarhand } from "../farhand.js";
import { createNatsRpc } from "../wire/nats-rpc.js";
import { type Child, startChild } from "./child.js";

/** The machine that `farhand up` runs on, as one of its machines. */
export const LOCAL = { workspace: "default", machine: "local" } as const;

const AGENT_MAIN = fileURLToPath(new URL("../../agent/main.js", import.meta.url));
const READY_MS = 15_000;

export interface LocalAgentOptions {
  readonly home: string;
  readonly url: string;
  /** Root of the local machine; its home directory if absent. */
  readonly root?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

const stateDir = (home: string): string => join(home, "agent");
const logFile = (home: string): string => join(home, "logs", "agent.log");
const credsPath = (home: string): string => join(home, "creds", "local.creds");

/** As much of the agent's identity as tells whether it is still of use. */
const identitySchema = z.object({ servers: z.array(z.string()), authority: z.string(), seed: z.string() });

const hasIdentity = (
  { keys }: Authority,
  { home, url }: LocalAgentOptions,
  publicKey: string | undefined,
): boolean => {
  const path = join(stateDir(home), "identity.json");
  if (!existsSync(path)) return false;
  try {
    const { servers, authority, seed } = identitySchema.parse(JSON.parse(readFileSync(path, "utf8")));
    const isOurs = authority === keys.controlSigner.publicKey && servers.includes(url);
    return isOurs && signingKeyFromSeed(seed).publicKey === publicKey;
  } catch {
    return false;
  }
};

const lastLine = (file: string): string => {
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return lines.findLast((line) => line.startsWith("farhand-agent: ")) ?? lines.at(-1) ?? "";
};

/** The token goes through a file: arguments and environments can be read by others. */
const joinAnew = async (authority: Authority, options: LocalAgentOptions): Promise<void> => {
  const { home, url, env } = options;
  const tokenFile = join(home, "agent-token");
  const { text } = await createToken(authority, { ...LOCAL, servers: [url] });
  try {
    replacePrivateFile(tokenFile, `${text}\n`);
    const args = ["join", "--token-file", tokenFile, "--state", stateDir(home), "--force", "--no-run"];
    const how = await startChild(process.execPath, [AGENT_MAIN, ...args], { logFile: logFile(home), env })
      .exited;
    if (how !== 0) {
      throw new FarhandError(
        "conflict",
        `the agent of this machine could not join: ${lastLine(logFile(home))}`,
        {
          advice: `its log is ${logFile(home)}`,
        },
      );
    }
  } finally {
    rmSync(tokenFile, { force: true });
  }
};

/** Joins this machine unless it has; false if it was revoked, which only its owner can undo. */
export const joinLocalAgent = async (authority: Authority, options: LocalAgentOptions): Promise<boolean> => {
  const { record } = await authority.records.machines.get(recordKey(LOCAL));
  if (record?.status === "revoked") return false;
  if (!hasIdentity(authority, options, record?.publicKey)) await joinAnew(authority, options);
  return true;
};

export const startLocalAgent = async ({ home, root, env }: LocalAgentOptions): Promise<Child> => {
  const args = ["run", "--state", stateDir(home), ...(root === undefined ? [] : ["--root", root])];
  return startChild(process.execPath, [AGENT_MAIN, ...args], { logFile: logFile(home), env });
};

const goodCredentials = async ({ records }: Authority, path: string): Promise<Credentials | undefined> => {
  if (!existsSync(path)) return undefined;
  const kept = readCredentials(path);
  const { record } = await records.credentials.get(recordKey(LOCAL));
  return record?.status === "active" && record.publicKey === kept.key.publicKey ? kept : undefined;
};

/** Credentials for whoever works where `farhand up` runs; made anew if they are gone or no longer good. */
export const localCredentials = async (
  authority: Authority,
  home: string,
): Promise<{ path: string; credentials: Credentials }> => {
  const path = credsPath(home);
  const kept = await goodCredentials(authority, path);
  if (kept !== undefined) return { path, credentials: kept };
  const { workspace, machine: name } = LOCAL;
  const { text } = await createCredential(authority, { workspace, name, role: "operator", replace: true });
  replacePrivateFile(path, text);
  return { path, credentials: readCredentials(path) };
};

/** Resolves when the agent answers; throws what `ended` says if it ends instead. */
export const waitForAgent = async (options: {
  url: string;
  credentials: Credentials;
  ended: Promise<string>;
}): Promise<void> => {
  const { url, credentials, ended } = options;
  await using farhand = createFarhand({
    rpc: createNatsRpc({ servers: [url], name: "farhand-up", credentials }),
    workspace: LOCAL.workspace,
    credentials,
  });
  const ping = async (): Promise<undefined> => {
    for (const until = performance.now() + READY_MS; ; await sleep(50)) {
      try {
        await farhand.machine(LOCAL.machine).ping({ timeoutMs: 1_000 });
        return;
      } catch (error) {
        if (performance.now() > until) throw error;
      }
    }
  };
  const failure = await Promise.race([ping(), ended]);
  if (failure !== undefined)
    throw new FarhandError("conflict", failure, { advice: "the agent's log says why" });
};
