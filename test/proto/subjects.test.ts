import { describe, expect, test } from "vitest";
import { checkId, formatMachineRef, parseMachineRef, parseSubject, subjects } from "../../proto/subjects.js";

const invalid = (naming: RegExp) =>
  expect.objectContaining({ name: "FarhandError", code: "invalid", message: expect.stringMatching(naming) });

const REFUSED = [
  "",
  "a.b",
  "*",
  "a*",
  ">",
  "a>",
  "Upper",
  "a b",
  "a\n",
  "a\0",
  "-a",
  "_a",
  "ä",
  "a/b",
  "x".repeat(64),
  "all",
];

test("each subject is the one that the design gives", () => {
  const ref = { workspace: "w1", machine: "m-1_x" };
  expect(subjects.rpc(ref)).toBe("agent.w1.m-1_x.rpc");
  expect(subjects.scatter("w1")).toBe("agent.w1.all.rpc");
  expect(subjects.presence(ref)).toBe("agentev.w1.m-1_x.presence");
  expect(subjects.claim(ref)).toBe("agentev.w1.m-1_x.claim");
  expect(subjects.seen("w1")).toBe("control.w1.seen");
});

describe.each(REFUSED)("the id %j", (id) => {
  test("is refused wherever a subject is built from it", () => {
    const asMachine = { workspace: "w1", machine: id };
    const asWorkspace = { workspace: id, machine: "m1" };
    for (const build of [subjects.rpc, subjects.presence, subjects.claim]) {
      expect(() => build(asMachine)).toThrow(invalid(/^machine name/));
      expect(() => build(asWorkspace)).toThrow(invalid(/^workspace name/));
    }
    expect(() => subjects.scatter(id)).toThrow(invalid(/^workspace name/));
    expect(() => subjects.seen(id)).toThrow(invalid(/^workspace name/));
  });

  test("is refused in a machine's name, on either side of the slash", () => {
    expect(() => parseMachineRef(`w1/${id}`, "default")).toThrow(invalid(/^machine name/));
    expect(() => parseMachineRef(`${id}/m1`, "default")).toThrow(invalid(/name/));
  });
});

test.each(["a", "0", "a-", "a_", "x".repeat(63), "all1"])("the id %j is accepted", (id) => {
  expect(checkId("machine", id)).toBe(id);
  expect(subjects.rpc({ workspace: id, machine: id })).toBe(`agent.${id}.${id}.rpc`);
});

test("a machine without a workspace is in the default one, and a ref is written as it is read", () => {
  expect(parseMachineRef("m1", "home")).toEqual({ workspace: "home", machine: "m1" });
  expect(parseMachineRef("w1/m1", "home")).toEqual({ workspace: "w1", machine: "m1" });
  expect(formatMachineRef(parseMachineRef("w1/m1", "home"))).toBe("w1/m1");
});

test("a second slash does not name a machine", () => {
  expect(() => parseMachineRef("w1/m1/x", "home")).toThrow(invalid(/^machine name/));
});

test("the workspace and machine of a subject are read back from it", () => {
  const ref = { workspace: "w1", machine: "m1" };
  expect(parseSubject(subjects.presence(ref))).toEqual(ref);
  expect(parseSubject(subjects.claim(ref))).toEqual(ref);
  expect(parseSubject(subjects.seen("w1"))?.workspace).toBe("w1");
  expect(parseSubject("nonsense")).toBeUndefined();
});

test("the wildcards match the subjects that they stand for", () => {
  const matches = (pattern: string, subject: string): boolean => {
    const [expected, tokens] = [pattern.split("."), subject.split(".")];
    return (
      expected.length === tokens.length &&
      expected.every((token, at) => token === "*" || token === tokens[at])
    );
  };
  const ref = { workspace: "w1", machine: "m1" };
  expect(matches(subjects.presenceOfAll, subjects.presence(ref))).toBe(true);
  expect(matches(subjects.presenceOfAll, subjects.claim(ref))).toBe(false);
  expect(matches(subjects.seenOfAll, subjects.seen("w1"))).toBe(true);
});
