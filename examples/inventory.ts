// What runs on my machines? Usage: node inventory.js local build-box …
import { connect, FarhandError } from "../control/index.js";

await using farhand = await connect();

for (const name of process.argv.slice(2)) {
  try {
    const machine = farhand.machine(name);
    const { os, arch, user } = await machine.describe();
    const { stdout } = await machine.commands.run("uptime -p", { timeoutMs: 5_000 });
    console.log(`${name}: ${os} ${arch}, as ${user}, ${stdout.trim()}`);
  } catch (error) {
    // A machine that does not answer is offline or reconnecting; it is never gone.
    if (!(error instanceof FarhandError)) throw error;
    console.log(`${name}: ${error.code} (${error.advice})`);
  }
}
