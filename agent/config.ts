import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import * as z from "zod";
import { FarhandError } from "../proto/farhand-error.js";
import { farhandHome } from "../proto/home.js";
import { idProblem } from "../proto/subjects.js";
import { checkNotRevoked, type Identity, readIdentity } from "./identity/identity.js";

const id = z.string().superRefine((value, context) => {
  const problem = idProblem(value);
  if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
});

const schema = z.strictObject({
  /** Who vouches for callers: their own proof, or the bus that let them in. */
  auth: z.enum(["end-to-end", "bus"]).default("end-to-end"),
  servers: z.array(z.string().min(1)).min(1, "name at least one nats-server"),
  workspace: id.default("default"),
  machine: id,
  /** A NATS creds file, for a bus that somebody else secured. */
  creds: z.string().min(1).optional(),
  /** Where relative paths and commands start. */
  root: z.string().min(1).default(homedir()),
  drainGraceMs: z.int().min(0).max(600_000).default(10_000),
  logLevel: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
});

export type Config = Readonly<z.infer<typeof schema>> & {
  readonly stateDir: string;
  /** Present unless it is left to the bus who may reach the machine. */
  readonly identity?: Identity | undefined;
};

/** What the command line says, not yet checked; undefined where it says nothing. */
export type ConfigInput = { readonly [K in keyof z.input<typeof schema>]?: unknown } & {
  readonly stateDir?: string | undefined;
};

type Settings = Record<string, unknown>;

const readConfigFile = (path: string): Settings => {
  if (!existsSync(path)) return {};
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    throw new FarhandError(
      "invalid",
      `${path} cannot be read as JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
};

export const stateDirectory = (given: string | undefined, env: NodeJS.ProcessEnv): string =>
  resolve(given ?? join(farhandHome(env), "agent"));

/** Who the machine is and where its bus is was settled when it joined: other names are a mistake. */
const withIdentity = (settings: Settings, identity: Identity): Settings => {
  const { servers, workspace, machine } = identity;
  const joined: Settings = { servers, workspace, machine, creds: undefined };
  const others = Object.keys(joined).filter(
    (name) => settings[name] !== undefined && JSON.stringify(settings[name]) !== JSON.stringify(joined[name]),
  );
  if (others.length > 0) {
    throw new FarhandError(
      "invalid",
      `this machine joined as ${workspace}/${machine} on ${servers.join(", ")}, which ${others.join(", ")} cannot change`,
      { advice: "leave that out, join again with --force, or leave the security to the bus with --auth bus" },
    );
  }
  const { creds: _creds, ...rest } = settings;
  return { ...rest, servers, workspace, machine };
};

const joinedIdentity = (stateDir: string): Identity => {
  const identity = readIdentity(stateDir);
  if (identity === undefined) {
    throw new FarhandError(
      "unauthenticated",
      `this machine has not joined a workspace yet (no identity in ${stateDir})`,
      {
        advice:
          "get a token (farhand token create) and run farhand-agent join <token>; " +
          "on a bus that somebody else secured, run with --auth bus",
      },
    );
  }
  checkNotRevoked(identity);
  return identity;
};

/** The agent's configuration: `agent.json` in its state directory, overridden by what is given here. */
export const loadConfig = ({ stateDir: given, ...input }: ConfigInput, env: NodeJS.ProcessEnv): Config => {
  const stateDir = stateDirectory(given, env);
  const file = join(stateDir, "agent.json");
  const stated = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const settings: Settings = { ...readConfigFile(file), ...stated };
  const identity = settings["auth"] === "bus" ? undefined : joinedIdentity(stateDir);
  const servers = stated["servers"] ?? env["FARHAND_URL"]?.split(",") ?? settings["servers"];
  const read = schema.safeParse(
    identity === undefined ? { ...settings, servers } : withIdentity(settings, identity),
  );
  if (!read.success) {
    const problems = read.error.issues.map(
      (issue) => `${issue.path.join(".") || "configuration"}: ${issue.message}`,
    );
    throw new FarhandError("invalid", `the configuration is not valid: ${problems.join("; ")}`, {
      advice: `correct the options given, or ${file}`,
    });
  }
  return Object.freeze({ ...read.data, root: resolve(read.data.root), stateDir, identity });
};
