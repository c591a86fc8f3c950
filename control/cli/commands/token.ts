import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { durationOf, when, withAuthority } from "../authority.js";
import { inert, onErr, onOut, say, sayJson, table, warn } from "../output.js";
import type { CommonFlags } from "../session.js";

interface CreateFlags extends CommonFlags {
  name?: string;
  expires?: string;
  server?: string[];
}

const addCreate = (token: Command): void => {
  token
    .command("create")
    .description("make a one-time token that a machine joins with")
    .option("-n, --name <machine>", "bind it to this name (default: the joining machine says its own)")
    .option("--expires <time>", "how long it is good for, such as 30m or 2h (default 30m)")
    .option("--server <url...>", "how the machine reaches the bus (default: as this command does)")
    .addHelpText(
      "after",
      `
The token is printed on one line of its own, and is a secret until it is used.

Examples:
  farhand token create --name my-laptop
  farhand token create --expires 2h --server tls://nats.example.com:4222 --ca ca.pem`,
    )
    .action((_flags: unknown, command: Command) => {
      const flags: CreateFlags = command.optsWithGlobals();
      return withAuthority(flags, async (authority, { servers, caFile }) => {
        const { createToken } = await import("../../authority/tokens.js");
        const created = await createToken(authority, {
          workspace: flags.workspace ?? "default",
          machine: flags.name,
          servers: flags.server ?? servers,
          ca: caFile === undefined ? undefined : readFileSync(caFile, "utf8"),
          expiresInMs: durationOf("--expires", flags.expires),
        });
        if (flags.json === true)
          return sayJson({ token: created.text, id: created.id, expires: new Date(created.expiresMs) });
        say(created.text);
        warn(`\nOn the machine, until ${when(created.expiresMs)}:`);
        warn(`  ${onErr("cyan", "npx farhand-agent join <the line above>")}`);
      });
    });
};

const addList = (token: Command): void => {
  token
    .command("list")
    .description("list tokens, without their secrets")
    .action((_flags: unknown, command: Command) => {
      const flags: CommonFlags = command.optsWithGlobals();
      return withAuthority(flags, async (authority) => {
        const { listTokens } = await import("../../authority/tokens.js");
        const tokens = await listTokens(authority);
        if (flags.json === true) return tokens.forEach(sayJson);
        if (tokens.length === 0) return say("no tokens");
        const rows = tokens.map(({ id, workspace, machine, state, expiresMs, usedBy }) => [
          id,
          workspace,
          inert(machine ?? "(any)"),
          state,
          when(expiresMs),
          inert(usedBy ?? ""),
        ]);
        const [head = "", ...lines] = table([
          ["ID", "WORKSPACE", "NAME", "STATE", "EXPIRES", "USED BY"],
          ...rows,
        ]);
        say(onOut("bold", head));
        lines.forEach(say);
      });
    });
};

const addRevoke = (token: Command): void => {
  token
    .command("revoke <id>")
    .description("make a token that was not used yet worthless")
    .action((id: string, _flags: unknown, command: Command) => {
      const flags: CommonFlags = command.optsWithGlobals();
      return withAuthority(flags, async (authority) => {
        const { revokeToken } = await import("../../authority/tokens.js");
        await revokeToken(authority, id);
        if (flags.json === true) sayJson({ id, state: "revoked" });
        else say(`revoked ${id}`);
      });
    });
};

export const addToken = (program: Command): Command[] => {
  const token = program.command("token").description("tokens that machines join with");
  addCreate(token);
  addList(token);
  addRevoke(token);
  return [...token.commands];
};
