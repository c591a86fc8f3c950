import { atEnd } from "./at-end.js";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory that is gone when the test is. */
export const temporaryDirectory = (): string => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "farhand-test-")));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
};
