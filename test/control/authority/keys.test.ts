import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { authorityPath, openKeys, readKeys, requireKeys } from "../../../control/authority/keys.js";
import {
  createPrivateFile,
  readPrivateFile,
  replacePrivateFile,
} from "../../../control/authority/private-file.js";
import { FarhandError } from "../../../proto/farhand-error.js";
import { temporaryDirectory } from "../../support/temporary.js";

const faultIn = (act: () => unknown): FarhandError => {
  try {
    act();
  } catch (error) {
    if (error instanceof FarhandError) return error;
    throw error;
  }
  throw new Error("expected a FarhandError");
};

describe("the authority's keys", () => {
  test("are made once and are the same from then on", () => {
    const home = temporaryDirectory();
    const made = openKeys(home);
    const again = openKeys(home);
    for (const name of ["operator", "system", "account", "agentSigner", "controlSigner"] as const)
      expect(again[name].publicKey).toBe(made[name].publicKey);
    expect(new Set(Object.values(made).map(({ publicKey }) => publicKey)).size).toBe(8);
  });

  test("are in a file that only its owner can read, and nothing else is left beside it", () => {
    const home = join(temporaryDirectory(), "home");
    openKeys(home);
    expect(statSync(authorityPath(home)).mode & 0o777).toBe(0o600);
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect(readdirSync(home)).toEqual(["authority.json"]);
  });

  test("are refused when others may read them", () => {
    const home = temporaryDirectory();
    openKeys(home);
    chmodSync(authorityPath(home), 0o640);
    const fault = faultIn(() => openKeys(home));
    expect(fault.code).toBe("denied");
    expect(fault.message).toContain("can be read by others (mode 640)");
    expect(fault.advice).toContain("chmod 600");
  });

  test.each([
    ["not JSON", "S".repeat(40)],
    ["another shape", "{}"],
    ["an empty file", ""],
  ])("are refused when the file is %s, without quoting it", (_what, text) => {
    const home = temporaryDirectory();
    writeFileSync(authorityPath(home), text, { mode: 0o600 });
    const fault = faultIn(() => openKeys(home));
    expect(fault.code).toBe("invalid");
    expect(fault.message).toBe(`${authorityPath(home)} is not an authority of farhand`);
    expect(readFileSync(authorityPath(home), "utf8")).toBe(text);
  });

  test("are refused when a seed is damaged or of another kind", () => {
    const home = temporaryDirectory();
    const { account } = openKeys(home);
    const seeds: Record<string, string> = JSON.parse(readFileSync(authorityPath(home), "utf8"));
    for (const operator of [account.seed, account.seed.replace(/.$/, "A"), `${account.seed}A`]) {
      writeFileSync(authorityPath(home), JSON.stringify({ ...seeds, operator }));
      const fault = faultIn(() => readKeys(home));
      expect(fault.code).toBe("invalid");
      expect(fault.message).not.toContain(operator);
    }
  });

  test("that are missing are one clear sentence for those who need them", () => {
    const home = temporaryDirectory();
    expect(readKeys(home)).toBeUndefined();
    const fault = faultIn(() => requireKeys(home));
    expect(fault.message).toBe(`there is no authority at ${authorityPath(home)}`);
    expect(fault.advice).toContain("FARHAND_HOME");
  });
});

describe("a private file", () => {
  test("is never overwritten by one that creates", () => {
    const path = join(temporaryDirectory(), "secret");
    createPrivateFile(path, "first");
    expect(faultIn(() => createPrivateFile(path, "second")).code).toBe("conflict");
    expect(readPrivateFile(path, "")).toBe("first");
  });

  test("is private also when it replaces one that was not", () => {
    const path = join(temporaryDirectory(), "secret");
    writeFileSync(path, "old", { mode: 0o644 });
    replacePrivateFile(path, "new");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(existsSync(`${path}.${process.pid}.tmp`)).toBe(false);
  });

  test("leaves the directory that it is put into as it is, and makes a new one private", () => {
    const directory = temporaryDirectory();
    chmodSync(directory, 0o755);
    createPrivateFile(join(directory, "secret"), "x");
    createPrivateFile(join(directory, "new", "secret"), "x");
    expect(statSync(directory).mode & 0o777).toBe(0o755);
    expect(statSync(join(directory, "new")).mode & 0o777).toBe(0o700);
  });

  test("that cannot be written is one clear sentence", () => {
    expect(faultIn(() => createPrivateFile("/proc/farhand/secret", "x")).message).toContain(
      "/proc/farhand/secret cannot be written",
    );
  });
});
