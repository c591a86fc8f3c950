import type { Command } from "commander";
import { FarhandError } from "../../../proto/farhand-error.js";
import type { FileInfo } from "../../files.js";
import { inert, onOut, say, sayJson, table } from "../output.js";
import { type CommonFlags, modeOf, placeOf, readStdin, withFarhand } from "../session.js";

const LETTERS = {
  directory: "d",
  symlink: "l",
  fifo: "p",
  socket: "s",
  device: "c",
  file: "-",
  other: "?",
} as const;

const permissions = ({ kind, mode }: FileInfo): string => {
  const bits = "rwxrwxrwx".split("").map((letter, at) => (mode & (0o400 >> at) ? letter : "-"));
  if (mode & 0o4000) bits[2] = bits[2] === "x" ? "s" : "S";
  if (mode & 0o2000) bits[5] = bits[5] === "x" ? "s" : "S";
  if (mode & 0o1000) bits[8] = bits[8] === "x" ? "t" : "T";
  return LETTERS[kind] + bits.join("");
};

const minutes = (date: Date): string => date.toISOString().slice(0, 16).replace("T", " ");

const shown = (info: FileInfo): string => {
  const name = inert(info.name);
  if (info.kind === "directory") return `${onOut("blue", name)}/`;
  if (info.kind === "symlink") return `${onOut("cyan", name)} -> ${inert(info.linkTarget ?? "")}`;
  return info.mode & 0o111 ? onOut("green", name) : name;
};

const row = (info: FileInfo): string[] =>
  info.problem === null
    ? [permissions(info), String(info.uid), String(info.gid), String(info.size), minutes(info.modified)]
    : ["?", "", "", "", inert(info.problem)];

const addList = (program: Command): void => {
  program
    .command("ls <machine:path>")
    .description("list a directory")
    .addHelpText("after", "\nExamples:\n  farhand ls local:/tmp\n  farhand ls local: --json")
    .action((place: string, _flags: unknown, command: Command) => {
      const flags: CommonFlags = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const { machine, path } = placeOf(farhand, place);
        const entries: FileInfo[] = [];
        for await (const entry of machine.files.entries(path)) entries.push(entry);
        if (flags.json === true) return entries.forEach(sayJson);
        table(entries.map(row), new Set([1, 2, 3])).forEach((line, at) => {
          const entry = entries[at];
          if (entry !== undefined) say(`${line}  ${shown(entry)}`);
        });
      });
    });
};

const addCat = (program: Command): void => {
  program
    .command("cat <machine:path...>")
    .description("print files")
    .addHelpText("after", "\nExample:\n  farhand cat local:/etc/hostname")
    .action((places: string[], _flags: unknown, command: Command) =>
      withFarhand(command.optsWithGlobals(), async (farhand) => {
        for (const place of places) {
          const { machine, path } = placeOf(farhand, place);
          for await (const part of await machine.files.read(path, { format: "stream" })) {
            if (!process.stdout.write(part))
              await new Promise((resolve) => process.stdout.once("drain", resolve));
          }
        }
      }),
    );
};

interface WriteFlags extends CommonFlags {
  append?: boolean;
  ifMatch?: string;
  ifNoneMatch?: boolean;
  mode?: string;
  parents?: boolean;
}

const addWrite = (program: Command): void => {
  program
    .command("write <machine:path>")
    .description("write standard input to a file, whole or not at all")
    .option("-a, --append", "add to its end")
    .option("--if-match <sha256>", "only if the file still has this digest")
    .option("--if-none-match", "only if there is no such file")
    .option("-m, --mode <octal>", "permissions of a new file")
    .option("-p, --parents", "make missing directories")
    .addHelpText("after", "\nExample:\n  echo hi | farhand write local:notes.txt")
    .action((place: string, _flags: unknown, command: Command) => {
      const flags: WriteFlags = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const { machine, path } = placeOf(farhand, place);
        const written = await machine.files.write(path, await readStdin(), {
          append: flags.append,
          ifMatch: flags.ifMatch,
          ifNoneMatch: flags.ifNoneMatch,
          mode: modeOf(flags.mode),
          createParents: flags.parents,
        });
        if (flags.json === true) sayJson(written);
        else
          say(
            `${written.created ? "created" : "wrote"} ${inert(written.path)}, ${written.size} bytes${written.sha256 === null ? "" : `, sha256 ${written.sha256}`}`,
          );
      });
    });
};

const addStat = (program: Command): void => {
  program
    .command("stat <machine:path>")
    .description("show what is at a path")
    .option("--digest", "also the SHA-256 of the contents")
    .option("--no-follow", "look at a link itself")
    .action((place: string, _flags: unknown, command: Command) => {
      const flags: CommonFlags & { digest?: boolean; follow?: boolean } = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const { machine, path } = placeOf(farhand, place);
        const info = await machine.files.stat(path, { digest: flags.digest, follow: flags.follow });
        if (flags.json === true) return sayJson(info);
        const rows = [
          ["path", inert(info.path)],
          ["kind", info.kind],
          ["size", String(info.size)],
          ["mode", `${permissions(info)} (${info.mode.toString(8).padStart(4, "0")})`],
          ["owner", `${info.uid}:${info.gid}`],
          ["modified", info.modified.toISOString()],
          ...(info.linkTarget === null ? [] : [["link to", inert(info.linkTarget)]]),
          ...(info.sha256 === null ? [] : [["sha256", info.sha256]]),
        ];
        table(rows).forEach(say);
      });
    });
};

const addChanges = (program: Command): void => {
  program
    .command("mkdir <machine:path>")
    .description("make a directory")
    .option("-p, --parents", "make missing parents, and do not mind if it exists")
    .option("-m, --mode <octal>", "its permissions")
    .action((place: string, _flags: unknown, command: Command) => {
      const flags: CommonFlags & { parents?: boolean; mode?: string } = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const { machine, path } = placeOf(farhand, place);
        const made = await machine.files.makeDir(path, { parents: flags.parents, mode: modeOf(flags.mode) });
        if (flags.json === true) sayJson(made);
      });
    });
  program
    .command("mv <machine:from> <to>")
    .description("move or rename on one machine; <to> is a path, or machine:path of the same machine")
    .option("-f, --force", "overwrite what is there")
    .action((from: string, to: string, _flags: unknown, command: Command) => {
      const flags: CommonFlags & { force?: boolean } = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const source = placeOf(farhand, from);
        const prefix = from.slice(0, from.indexOf(":") + 1);
        if (!to.startsWith(prefix) && /^[a-z0-9_/-]+:/.test(to)) {
          throw new FarhandError("invalid", "mv works within one machine", {
            advice: "copy the file over and remove it here",
          });
        }
        const moved = await source.machine.files.move(
          source.path,
          to.startsWith(prefix) ? to.slice(prefix.length) : to,
          { overwrite: flags.force },
        );
        if (flags.json === true) sayJson(moved);
      });
    });
  program
    .command("rm <machine:path>")
    .description("remove a file, or with -r a directory and all in it")
    .option("-r, --recursive", "with everything in it")
    .option("-f, --force", "do not mind if it is not there")
    .action((place: string, _flags: unknown, command: Command) => {
      const flags: CommonFlags & { recursive?: boolean; force?: boolean } = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const { machine, path } = placeOf(farhand, place);
        const result = await machine.files.remove(path, {
          recursive: flags.recursive,
          missingOk: flags.force,
        });
        if (flags.json === true) sayJson(result);
      });
    });
  program
    .command("chmod <mode> <machine:path>")
    .description("change permissions, for example 755")
    .action((mode: string, place: string, _flags: unknown, command: Command) => {
      const flags: CommonFlags = command.optsWithGlobals();
      return withFarhand(flags, async (farhand) => {
        const { machine, path } = placeOf(farhand, place);
        const info = await machine.files.chmod(path, modeOf(mode) ?? 0);
        if (flags.json === true) sayJson(info);
      });
    });
};

export const addFiles = (program: Command): void => {
  addList(program);
  addCat(program);
  addWrite(program);
  addStat(program);
  addChanges(program);
};
