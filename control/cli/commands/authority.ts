import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { FarhandError } from "../../../proto/farhand-error.js";
import { farhandHome } from "../../../proto/home.js";
import { type NkeyKind, type SigningKey, signingKeyFromSeed } from "../../../proto/nkey.js";
import { authorityPath, openKeys, readKeys, requireKeys } from "../../authority/keys.js";
import { authorityPlace } from "../authority.js";
import { inert, report, say, sayJson, warn } from "../output.js";
import type { CommonFlags } from "../session.js";

interface InitFlags extends CommonFlags {
  operatorSeedFile?: string;
  systemSeedFile?: string;
}

const seedFrom = (option: string, path: string | undefined, kind: NkeyKind): SigningKey | undefined => {
  if (path === undefined) return undefined;
  const key = signingKeyFromSeed(readFileSync(path, "utf8").trim());
  if (key.kind !== kind)
    throw new FarhandError("invalid", `${option}: ${path} has the seed of another kind of key than ${kind}`);
  return key;
};

const guarded = async (flags: CommonFlags, act: () => Promise<void>): Promise<void> => {
  try {
    await act();
  } catch (error) {
    process.exitCode = report(error, flags.json === true);
  }
};

const addInit = (authority: Command): void => {
  authority
    .command("init")
    .description("make the keys of an authority in FARHAND_HOME, for a bus that something else keeps running")
    .option("--operator-seed-file <file>", "seed of your own NATS operator (or of its signing key)")
    .option("--system-seed-file <file>", "seed of your operator's system account")
    .action((_flags: unknown, command: Command) => {
      const flags: InitFlags = command.optsWithGlobals();
      return guarded(flags, async () => {
        const home = farhandHome(process.env);
        if (readKeys(home) !== undefined) {
          throw new FarhandError("conflict", `there is an authority at ${authorityPath(home)} already`, {
            advice: "use it as it is, or name another FARHAND_HOME",
          });
        }
        const operator = seedFrom("--operator-seed-file", flags.operatorSeedFile, "operator");
        const system = seedFrom("--system-seed-file", flags.systemSeedFile, "account");
        if ((operator === undefined) !== (system === undefined)) {
          throw new FarhandError(
            "invalid",
            "give the seeds of both the operator and its system account, or of neither",
          );
        }
        const keys = openKeys(home, { ...(operator && { operator }), ...(system && { system }) });
        const made = {
          authority: authorityPath(home),
          operator: keys.operator.publicKey,
          account: keys.account.publicKey,
        };
        if (flags.json === true) return sayJson(made);
        say(made.authority);
        warn(
          `\naccount ${made.account} of operator ${made.operator}; next: farhand authority push, or authority config`,
        );
      });
    });
};

const addConfig = (authority: Command): void => {
  authority
    .command("config")
    .description("print the lines that put a nats-server under this authority")
    .option("--resolver-dir <dir>", "where the server keeps accounts (default: FARHAND_HOME/nats/accounts)")
    .action((_flags: unknown, command: Command) => {
      const flags: CommonFlags & { resolverDir?: string } = command.optsWithGlobals();
      return guarded(flags, async () => {
        const { operatorConfig } = await import("../../authority/server-config.js");
        const home = farhandHome(process.env);
        say((await operatorConfig(requireKeys(home), home, flags.resolverDir)).trim());
      });
    });
};

const addPush = (authority: Command): void => {
  authority
    .command("push")
    .description("tell running servers the account of this authority")
    .action((_flags: unknown, command: Command) => {
      const flags: CommonFlags = command.optsWithGlobals();
      return guarded(flags, async () => {
        const { introduceAccount } = await import("../../authority/introduce.js");
        const account = await introduceAccount(authorityPlace(flags), (error) =>
          warn(`farhand: ${inert(FarhandError.from(error).message)}`),
        );
        if (flags.json === true) sayJson({ account });
        else say(`the servers know the account ${account}`);
      });
    });
};

export const addAuthority = (program: Command): Command[] => {
  const authority = program
    .command("authority")
    .description(
      "the keys behind all identities, for buses that farhand up does not run (docs/operating.md)",
    );
  addInit(authority);
  addConfig(authority);
  addPush(authority);
  return [...authority.commands];
};
