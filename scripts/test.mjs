// npm test: set up what is missing, check, build, test. Arguments go to vitest.
import { checkNode, installDebianPackages, installPackages, run, bin } from "./setup.mjs";

checkNode();
installPackages();
installDebianPackages([]);
const filters = process.argv.slice(2);
const { check } = await import("./check.mjs");
if (filters.length === 0) check();
const { buildAll } = await import("./build.mjs");
await buildAll();
run(bin("vitest"), ["run", ...filters]);
