import { userInfo } from "node:os";
import type { Command } from "commander";
import { FarhandError } from "../../../proto/farhand-error.js";
import { formatMachineRef, parseMachineRef } from "../../../proto/subjects.js";
import { withAuthority } from "../authority.js";
import { say, sayJson } from "../output.js";
import type { CommonFlags } from "../session.js";

interface Flags extends CommonFlags {
  creds?: string;
}

export const addRevoke = (program: Command): void => {
  program
    .command("revoke [machine]")
    .description("revoke a machine or credentials, at once and for good")
    .option("--creds <name>", "revoke these credentials instead of a machine")
    .addHelpText(
      "after",
      `
A revoked machine is cut off the bus within a second, ends what runs and does not come back until it
joins again. Revoked credentials are cut off the bus and refused by every machine.

Examples:
  farhand revoke my-laptop
  farhand revoke --creds ci-backend --workspace team-a`,
    )
    .action((machine: string | undefined, _flags: unknown, command: Command) => {
      const flags: Flags = command.optsWithGlobals();
      return withAuthority(flags, async (authority) => {
        if ((machine === undefined) === (flags.creds === undefined)) {
          throw new FarhandError("invalid", "name either a machine or, with --creds, credentials");
        }
        const { revokeCredential, revokeMachine } = await import("../../authority/revoke.js");
        const workspace = flags.workspace ?? "default";
        const by = userInfo().username;
        if (machine !== undefined) {
          const ref = parseMachineRef(machine, workspace);
          await revokeMachine(authority, ref, by);
          if (flags.json === true) sayJson({ machine: formatMachineRef(ref), status: "revoked" });
          else say(`revoked the machine ${formatMachineRef(ref)}`);
          return;
        }
        const name = flags.creds ?? "";
        await revokeCredential(authority, { workspace, name }, by);
        if (flags.json === true) sayJson({ credentials: `${workspace}/${name}`, status: "revoked" });
        else say(`revoked the credentials ${workspace}/${name}`);
      });
    });
};
