import type { Command } from "commander";
import { inert, onOut, say, sayJson, table } from "../output.js";
import { type CommonFlags, withFarhand } from "../session.js";

export const addDescribe = (program: Command): void => {
  program
    .command("describe <machine>")
    .description("what a machine is and can do")
    .action((name: string, _flags: unknown, command: Command) => {
      const flags: CommonFlags = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const about = await farhand.machine(name).describe();
        if (flags.json === true) return sayJson(about);
        const rows = [
          ["machine", `${about.workspace}/${about.machine}`],
          ["host", inert(about.hostname)],
          ["system", `${about.os} ${inert(about.osVersion)} ${about.arch}`],
          ["user", inert(about.user)],
          ["root", inert(about.root)],
          ["since", about.started.toISOString()],
          ["process trees", about.treeMethod],
        ];
        table(rows).forEach(say);
        say("");
        const capabilities = Object.entries(about.capabilities);
        table(
          capabilities.map(([capability, { available, reason }]) => [
            capability,
            available ? "available" : (reason ?? "not available"),
          ]),
        ).forEach((line, at) => say(capabilities[at]?.[1].available === true ? line : onOut("dim", line)));
      });
    });
};
