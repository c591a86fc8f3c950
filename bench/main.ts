import { cpus, release, totalmem } from "node:os";
import { benchFootprint } from "./footprint.js";
import { benchIdentity } from "./identity.js";
import { benchPing } from "./ping.js";
import { markdown, type Row } from "./report.js";
import { benchRun } from "./run.js";
import { createWorld, type World } from "./world.js";

const SECTIONS: Readonly<Record<string, (world: World) => Promise<Row[]>>> = {
  footprint: benchFootprint,
  ping: benchPing,
  run: benchRun,
  identity: benchIdentity,
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(SECTIONS, name));
if (unknown.length > 0) {
  console.error(`unknown section ${unknown.join(", ")}: choose of ${Object.keys(SECTIONS).join(", ")}`);
  process.exit(64);
}

const world = await createWorld();
const missed: string[] = [];
try {
  console.log(
    `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, Node ${process.versions.node}`,
  );
  for (const [name, section] of Object.entries(SECTIONS)) {
    if (asked.length > 0 && !asked.includes(name)) continue;
    const rows = await section(world);
    console.log(`\n## ${name}\n\n${markdown(rows)}`);
    missed.push(...rows.filter(({ goal }) => goal?.met === false).map(({ what }) => what));
  }
} finally {
  await world.close();
}
if (missed.length > 0) console.log(`\nMissed: ${missed.join("; ")}`);
