import { expect, test } from "vitest";
import { cleanEnvironment, inheritedEnvironment } from "../../../../agent/host/processes/environment.js";

const LOADERS = [
  "LD_PRELOAD",
  "LD_LIBRARY_PATH",
  "LD_AUDIT",
  "DYLD_INSERT_LIBRARIES",
  "NODE_OPTIONS",
  "NODE_PATH",
  "BASH_ENV",
  "ENV",
  "PYTHONSTARTUP",
  "PERL5OPT",
  "RUBYOPT",
  "JAVA_TOOL_OPTIONS",
];
const OURS = ["FARHAND_TREE", "FARHAND_HOME", "FARHAND_URL", "FARHAND_ANYTHING"];

test.each([...LOADERS, ...OURS])("%s is neither passed on from the agent nor taken from a caller", (name) => {
  expect(inheritedEnvironment({ [name]: "x", PATH: "/bin" })).toEqual({ PATH: "/bin" });
  expect(cleanEnvironment({}, { [name]: "x", LANG: "C" })).toEqual({ env: { LANG: "C" }, removed: [name] });
});

test("what a caller asks for goes before what is inherited, and the rest is passed on", () => {
  const inherited = inheritedEnvironment({ PATH: "/bin", HOME: "/h", UNSET: undefined });
  const { env, removed } = cleanEnvironment(inherited, { HOME: "/other", A: "" });
  expect(env).toStrictEqual({ PATH: "/bin", HOME: "/other", A: "" });
  expect(removed).toEqual([]);
  expect(inherited).toStrictEqual({ PATH: "/bin", HOME: "/h" });
});

test.each(["OLD_LD_PRELOAD", "LDFLAGS", "NODE_ENV", "ENVIRONMENT", "MY_FARHAND_"])(
  "%s is not taken for a loader's variable",
  (name) => {
    expect(inheritedEnvironment({ [name]: "x" })).toEqual({ [name]: "x" });
    expect(cleanEnvironment({}, { [name]: "y" })).toEqual({ env: { [name]: "y" }, removed: [] });
  },
);
