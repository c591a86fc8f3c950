/**
 * Variables that make a program load or run other code than its own. They are neither passed on
 * from the agent nor taken from a caller.
 */
const LOADER_NAMES = new Set([
  "NODE_OPTIONS",
  "NODE_PATH",
  "BASH_ENV",
  "ENV",
  "PYTHONSTARTUP",
  "PERL5OPT",
  "RUBYOPT",
  "JAVA_TOOL_OPTIONS",
]);
const LOADER_PREFIXES = ["LD_", "DYLD_"];

/** What only the agent itself may say to its children. */
const OWN_PREFIX = "FARHAND_";

const isRefused = (name: string): boolean =>
  LOADER_NAMES.has(name) ||
  name.startsWith(OWN_PREFIX) ||
  LOADER_PREFIXES.some((prefix) => name.startsWith(prefix));

export interface Environment {
  readonly env: Record<string, string>;
  /** Asked for by the caller and not set. */
  readonly removed: string[];
}

/** What commands inherit from the agent. Taken once: every look into process.env is a call into the system. */
export const inheritedEnvironment = (own: NodeJS.ProcessEnv): Record<string, string> => {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && !isRefused(name)) env[name] = value;
  }
  return env;
};

export const cleanEnvironment = (
  inherited: Readonly<Record<string, string>>,
  asked: Readonly<Record<string, string>>,
): Environment => {
  const env = { ...inherited };
  const removed: string[] = [];
  for (const [name, value] of Object.entries(asked)) {
    if (isRefused(name)) removed.push(name);
    else env[name] = value;
  }
  return { env, removed };
};
