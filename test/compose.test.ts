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

const help = (program: string, command: string): string => {
  const main = MAINS[program];
  if (main === undefined) throw new Error(`${program} is no program of ours`);
  if (!existsSync(join(root, main))) throw new Error("dist is missing: run npm run build");
  return execFileSync(process.execPath, [join(root, main), command, "--help"], { encoding: "utf8" });
};

test("the services are a bus, the control plane and an agent", () => {
  expect([...services().keys()]).toEqual(["nats", "control", "agent"]);
});

test.each(["control", "agent"])("%s is started with a command and options that exist", (name) => {
  const [program = "", command = "", ...words] = commandOf(service(name));
  const text = help(program, command);
  expect(text).toContain(`Usage: ${program} ${command} `);
  for (const option of words.filter((word) => word.startsWith("-"))) {
    expect(text).toMatch(new RegExp(`^ +(-\\w, )?${option}[ ,]`, "m"));
  }
});

test.each(["control", "agent"])("%s finds the bus by a variable that its command reads", (name) => {
  const [program = "", command = ""] = commandOf(service(name));
  const variables = [...service(name).matchAll(/^ {6}(FARHAND_\w+): /gm)].map(([, variable]) => variable);
  expect(variables).toEqual(["FARHAND_URL"]);
  expect(help(program, command)).toContain("FARHAND_URL");
  expect(service(name)).toContain("FARHAND_URL: nats://nats:4222\n");
});

test("the bus is new enough, keeps its data, and is published on loopback only", () => {
  const [, major, minor] = /image: nats:(\d+)\.(\d+)/.exec(service("nats")) ?? [];
  expect(Number(major) * 100 + Number(minor)).toBeGreaterThanOrEqual(211);
  expect(commandOf(service("nats"))).toEqual(["nats-server", "--jetstream", "--store_dir", "/data"]);
  expect(service("nats")).toContain("- bus:/data\n");
  const ports = [...read("docker-compose.yml").matchAll(/^ {6}- "(.*:\d+)"$/gm)].map(([, port]) => port);
  expect(ports).toEqual(["127.0.0.1:${FARHAND_PORT:-4222}:4222"]);
});

test("the agent keeps its state, may finish its work at a stop, and is not started again by itself", () => {
  const home = /FARHAND_HOME=(\S+)/.exec(read("Dockerfile"))?.[1];
  expect(service("agent")).toContain(`- agent:${home}\n`);
  const words = commandOf(service("agent"));
  const drainMs = Number(words[words.indexOf("--drain-grace-ms") + 1]);
  const graceMs = Number(/stop_grace_period: (\d+)s/.exec(service("agent"))?.[1]) * 1000;
  expect(graceMs).toBeGreaterThan(drainMs);
  expect(service("agent")).toContain('restart: "no"\n');
});

test("every volume that a service uses is declared", () => {
  const declared = [...(read("docker-compose.yml").split(/^volumes:\n/m)[1] ?? "").matchAll(/^ {2}(\w+):/gm)];
  const used = [...read("docker-compose.yml").matchAll(/^ {6}- (\w+):\/\S+$/gm)];
  const names = (matches: RegExpExecArray[]): string[] => matches.map(([, name = ""]) => name).toSorted();
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
