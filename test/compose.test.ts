import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { z } from "zod";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const MAINS: Readonly<Record<string, string>> = {
  farhand: "dist/control/cli/main.js",
  "farhand-agent": "dist/agent/main.js",
};

/** The services as text: no dependency of ours reads YAML, and the file keeps to two spaces. */
const services = (): Map<string, string> => {
  const part = /^services:\n([\s\S]*?)^(?=\S)/m.exec(read("docker-compose.yml"))?.[1] ?? "";
  const pieces = part.split(/^ {2}(?=[a-z])/m).slice(1);
  return new Map(pieces.map((piece) => [piece.slice(0, piece.indexOf(":")), piece]));
};

const service = (name: string): string => services().get(name) ?? "";

const commandOf = (text: string): string[] =>
  z.array(z.string()).parse(JSON.parse(/^ {4}command: (\[[^\]]*\])/m.exec(text)?.[1] ?? "[]"));

const help = (program: string, command: readonly string[]): string => {
  const main = MAINS[program];
  if (main === undefined) throw new Error(`${program} is no program of ours`);
  if (!existsSync(join(root, main))) throw new Error("dist is missing: run npm run build");
  return execFileSync(process.execPath, [join(root, main), ...command, "--help"], { encoding: "utf8" });
};

/** Every call of one of our programs in the file, as words. */
const calls = (): string[][] => {
  const inScripts = [...read("docker-compose.yml").matchAll(/^ {8}.*?\b(farhand(?:-agent)? [^>\n]*)/gm)];
  const scripted = inScripts.flatMap(([, line = ""]) =>
    line.split("|| ").map((part) => part.trim().split(/\s+/)),
  );
  const lists = [...services().values()].map(commandOf).filter(([program = ""]) => program in MAINS);
  return [...scripted, ...lists].filter(([program = ""]) => program in MAINS);
};

test("the services are the keys, a bus, the control plane, a token and an agent", () => {
  expect([...services().keys()]).toEqual(["keys", "nats", "control", "token", "agent"]);
});

test("every command of ours exists, with every option that it is given", () => {
  const found = calls();
  expect(
    found
      .map((words) =>
        words
          .filter((word) => !word.startsWith("-"))
          .slice(0, 2)
          .join(" "),
      )
      .toSorted(),
  ).toEqual([
    "farhand authority",
    "farhand authority",
    "farhand creds",
    "farhand plane",
    "farhand token",
    "farhand-agent join",
    "farhand-agent run",
  ]);
  for (const [program = "", ...words] of found) {
    const groups = new Set(["authority", "creds", "token"]);
    const name = words.slice(0, groups.has(words[0] ?? "") ? 2 : 1);
    const text = help(program, name);
    expect(text).toContain(`Usage: ${program} ${name.join(" ")} `);
    for (const option of words.filter((word) => word.startsWith("-"))) {
      expect(text).toMatch(new RegExp(`^ +(-\\w, )?${option}[ ,]`, "m"));
    }
  }
});

test("what talks to the bus finds it by a variable that it reads", () => {
  for (const name of ["control", "token"]) expect(service(name)).toContain("FARHAND_URL: nats://nats:4222\n");
  expect(help("farhand", ["plane"])).toContain("FARHAND_URL");
  expect(help("farhand", ["token", "create"])).toContain("FARHAND_URL");
});

test("the bus is new enough, keeps its data, and is published on loopback only", () => {
  const [, major, minor] = /image: nats:(\d+)\.(\d+)/.exec(service("nats")) ?? [];
  expect(Number(major) * 100 + Number(minor)).toBeGreaterThanOrEqual(211);
  expect(commandOf(service("nats"))).toEqual(["nats-server", "-c", "/bootstrap/farhand.conf"]);
  expect(service("keys")).toContain('jetstream { store_dir: "/data" }');
  expect(service("nats")).toContain("- bus:/data\n");
  const ports = [...read("docker-compose.yml").matchAll(/^ {6}- "(.*:\d+)"$/gm)].map(([, port]) => port);
  expect(ports).toEqual(["127.0.0.1:${FARHAND_PORT:-4222}:4222"]);
});

test("the agent keeps its state, may finish its work at a stop, and is not started again by itself", () => {
  const home = /FARHAND_HOME=(\S+)/.exec(read("Dockerfile"))?.[1];
  expect(service("agent")).toContain(`- agent:${home}\n`);
  const drainMs = Number(/--drain-grace-ms (\d+)/.exec(service("agent"))?.[1]);
  const graceMs = Number(/stop_grace_period: (\d+)s/.exec(service("agent"))?.[1]) * 1000;
  expect(graceMs).toBeGreaterThan(drainMs);
  expect(service("agent")).toContain('restart: "no"\n');
});

test("every volume that a service uses is declared", () => {
  const declared = [...(read("docker-compose.yml").split(/^volumes:\n/m)[1] ?? "").matchAll(/^ {2}(\w+):/gm)];
  const used = [...read("docker-compose.yml").matchAll(/^ {6}- (\w+):\/\S+$/gm)];
  const names = (matches: RegExpExecArray[]): string[] =>
    [...new Set(matches.map(([, name = ""]) => name))].toSorted();
  expect(names(declared)).toEqual(names(used));
});

test("the image has the two commands and what the build copies, and does not run as root", () => {
  const text = read("Dockerfile");
  for (const [program, main] of Object.entries(MAINS)) {
    expect(text).toContain(`ln -s /app/${main} /usr/local/bin/${program} `);
  }
  const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = ""]) =>
    names.split(" "),
  );
  expect(copied.filter((name) => !existsSync(join(root, name)))).toEqual([]);
  expect([...text.matchAll(/^USER (\S+)$/gm)].map(([, user]) => user)).toEqual(["node"]);
});

test("the image's Node is one that package.json allows", () => {
  const { engines } = z
    .object({ engines: z.object({ node: z.string() }) })
    .parse(JSON.parse(read("package.json")));
  const images = [...read("Dockerfile").matchAll(/^FROM node:(\d+)-/gm)].map(([, major]) => major);
  expect(new Set(images)).toEqual(new Set([/^>=(\d+)\./.exec(engines.node)?.[1]]));
});
