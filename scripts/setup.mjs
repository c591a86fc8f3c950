// What a fresh clone lacks: npm packages, the built code and, for the tests, Debian packages.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));

const OLDEST_NODE = [20, 19];

const fail = (message) => {
  console.error(message);
  process.exit(1);
};

export const checkNode = () => {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])) return;
  fail(`farhand needs Node ${OLDEST_NODE.join(".")} or newer, and this is ${process.versions.node}.`);
};

/** Runs a program of the project and ends with its code if that is not 0. */
export const run = (command, args, options = {}) => {
  const { status, signal, error } = spawnSync(command, args, { cwd: root, stdio: "inherit", ...options });
  if (error) fail(`${command} could not be started: ${error.message}`);
  if (status !== 0) process.exit(status ?? (signal === null ? 1 : 128));
};

export const bin = (name) => join(root, "node_modules", ".bin", name);

/** Installs when the lock file is not the one that was installed last. */
export const installPackages = () => {
  const digest = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  const mark = join(root, "node_modules", ".farhand-installed");
  if (existsSync(mark) && readFileSync(mark, "utf8") === digest) return;
  console.error("Installing npm packages …");
  run("npm", ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  mkdirSync(join(root, "node_modules"), { recursive: true });
  writeFileSync(mark, digest);
};

const isInstalled = (name) => spawnSync("dpkg", ["-s", name], { stdio: "ignore" }).status === 0;

/** As root installs what is missing; as a plain user says which line would. */
export const installDebianPackages = (names) => {
  if (spawnSync("dpkg", ["--version"], { stdio: "ignore" }).status !== 0) return;
  const missing = names.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0)
    fail(
      `The tests need Debian packages that are missing. Run this first:\n  sudo apt-get install -y ${missing.join(" ")}`,
    );
  console.error(`Installing Debian packages: ${missing.join(" ")} …`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const quiet = { env, stdio: ["ignore", "ignore", "inherit"] };
  spawnSync("apt-get", ["update", "-qq"], quiet);
  execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...missing], quiet);
};
