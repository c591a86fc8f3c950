import { expect, test } from "vitest";
import { chooseName, nameFromHost } from "../../../agent/identity/machine-name.js";
import { idProblem } from "../../../proto/subjects.js";

test.each([
  ["My-Laptop.local", "my-laptop"],
  ["Ada's MacBook Pro", "ada-s-macbook-pro"],
  ["-_x.example.com", "x"],
  ["büro", "b-ro"],
  [`${"a".repeat(80)}.lan`, "a".repeat(63)],
])("the host name %s becomes the machine name %s", (hostname, name) => {
  expect(nameFromHost(hostname)).toBe(name);
  expect(idProblem(name)).toBeUndefined();
});

test("the name given goes before the token's, and that before the host's", () => {
  const hostname = "host";
  expect(chooseName({ given: "mine", bound: undefined, hostname })).toBe("mine");
  expect(chooseName({ given: undefined, bound: "theirs", hostname })).toBe("theirs");
  expect(chooseName({ given: undefined, bound: undefined, hostname })).toBe("host");
  expect(() => chooseName({ given: "mine", bound: "theirs", hostname })).toThrow("for the machine theirs");
});

test.each(["", "all", "...", "日本"])("a host named %j is to be given a name", (hostname) => {
  expect(() => chooseName({ given: undefined, bound: undefined, hostname })).toThrow("machine name");
});
