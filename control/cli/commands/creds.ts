import { userInfo } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { farhandHome } from "../../../proto/home.js";
import { createPrivateFile, refuseToOverwrite } from "../../authority/private-file.js";
import { durationOf, when, withAuthority } from "../authority.js";
import { inert, onErr, onOut, say, sayJson, table, warn } from "../output.js";
import type { CommonFlags } from "../session.js";

interface CreateFlags extends CommonFlags {
  readOnly?: boolean;
  expires?: string;
  output?: string;
}

const addCreate = (creds: Command): void => {
  creds
    .command("create <name>")
    .description("make credentials for a backend service or a person")
    .option("--read-only", "may look at machines and change nothing")
    .option("--expires <time>", "how long they are good for, such as 12h or 90d (default: until revoked)")
    .option(
      "-o, --output <file>",
      "where to write them, - for standard output (default: FARHAND_HOME/creds/<name>.creds)",
    )
    .addHelpText(
      "after",
      `
Examples:
  farhand creds create ci-backend --read-only
  farhand creds create alice --workspace team-a --expires 90d -o alice.creds
  FARHAND_CREDS=alice.creds farhand ping build-box`,
    )
    .action((name: string, _flags: unknown, command: Command) => {
      const flags: CreateFlags = command.optsWithGlobals();
      return withAuthority(flags, async (authority, { servers }) => {
        const [{ createCredential }, { revokeCredential }] = await Promise.all([
          import("../../authority/creds.js"),
          import("../../authority/revoke.js"),
        ]);
        const workspace = flags.workspace ?? "default";
        const role = flags.readOnly === true ? "reader" : "operator";
        const expiresInMs = durationOf("--expires", flags.expires);
        const path = resolve(flags.output ?? join(farhandHome(process.env), "creds", `${name}.creds`));
        const options = { workspace, name, role, expiresInMs } as const;
        if (flags.output === "-")
          return void process.stdout.write((await createCredential(authority, options)).text);
        refuseToOverwrite(path);
        const { text, publicKey, expiresMs } = await createCredential(authority, options);
        try {
          createPrivateFile(path, text);
        } catch (error) {
          // Nobody has them, so nobody must find them good, nor their name taken.
          await revokeCredential(authority, { publicKey }, userInfo().username);
          throw error;
        }
        if (flags.json === true)
          return sayJson({ name, workspace, role, publicKey, path, expires: expiresMs ?? null });
        say(path);
        warn(`\n${workspace}/${name} (${role}), good until ${when(expiresMs)}. To use them:`);
        warn(
          `  ${onErr("cyan", `FARHAND_URL=${servers.join(",")} FARHAND_CREDS=${path} npx farhand ping <machine>`)}`,
        );
      });
    });
};

const addList = (creds: Command): void => {
  creds
    .command("list")
    .description("list credentials, without their secrets")
    .action((_flags: unknown, command: Command) => {
      const flags: CommonFlags = command.optsWithGlobals();
      return withAuthority(flags, async (authority) => {
        const { listCredentials } = await import("../../authority/creds.js");
        const all = await listCredentials(authority);
        if (flags.json === true) return all.forEach(sayJson);
        if (all.length === 0) return say("no credentials");
        const rows = all.map(({ workspace, name, role, state, expiresMs, createdMs }) => [
          workspace,
          inert(name),
          role,
          state,
          when(createdMs),
          when(expiresMs),
        ]);
        const [head = "", ...lines] = table([
          ["WORKSPACE", "NAME", "ROLE", "STATE", "CREATED", "EXPIRES"],
          ...rows,
        ]);
        say(onOut("bold", head));
        lines.forEach(say);
      });
    });
};

export const addCreds = (program: Command): Command[] => {
  const creds = program.command("creds").description("credentials of those who command machines");
  addCreate(creds);
  addList(creds);
  return [...creds.commands];
};
