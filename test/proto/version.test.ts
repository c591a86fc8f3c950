import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { VERSION } from "../../proto/version.js";

test("the version that both sides tell is the one of the package", () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(manifest).toMatchObject({ name: "farhand", version: VERSION });
});
