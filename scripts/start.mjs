// npm start: everything from a fresh clone to a running `farhand up`.
import { checkNode, installPackages } from "./setup.mjs";

checkNode();
installPackages();
const { buildAll } = await import("./build.mjs");
await buildAll();
process.argv.splice(2, 0, "up");
await import("../dist/control/cli/main.js");
