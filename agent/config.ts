import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import * as z from "zod";
import { FarhandError } from "../proto/farhand-error.js";
import { farhandHome } from "../proto/home.js";
import { idProblem } from "../proto/subjects.js";

const id = z.string().superRefine((value, context) => {
  const problem = idProblem(value);
  if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
});

const schema = z.strictObject({
  servers: z.array(z.string().min(1)).min(1, "name at least one nats-server"),
  workspace: id.default("default"),
  machine: id,
  /** Where relative paths and commands start. */
  root: z.string().min(1).default(homedir()),
  drainGraceMs: z.int().min(0).max(600_000).default(10_000),
  logLevel: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
});

export type Config = Readonly<z.infer<typeof schema>> & { readonly stateDir: string };

/** What the command line and the environment say, not yet checked; undefined where they say nothing. */
export type ConfigInput = { readonly [K in keyof z.input<typeof schema>]?: unknown } & {
  readonly stateDir?: string | undefined;
};

const readConfigFile = (path: string): Record<string, unknown> => {
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

/** The agent's configuration: `agent.json` in its state directory, overridden by what is given here. */
export const loadConfig = ({ stateDir: given, ...input }: ConfigInput, env: NodeJS.ProcessEnv): Config => {
  const stateDir = resolve(given ?? join(farhandHome(env), "agent"));
  const file = join(stateDir, "agent.json");
  const stated = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const read = schema.safeParse({ ...readConfigFile(file), ...stated });
  if (!read.success) {
    const problems = read.error.issues.map(
      (issue) => `${issue.path.join(".") || "configuration"}: ${issue.message}`,
    );
    throw new FarhandError("invalid", `the configuration is not valid: ${problems.join("; ")}`, {
      advice: `correct the options given, or ${file}`,
    });
  }
  return Object.freeze({ ...read.data, root: resolve(read.data.root), stateDir });
};
