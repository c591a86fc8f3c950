import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FarhandError } from "../../proto/farhand-error.js";
import { startPair } from "../support/agent.js";
import { shared } from "../support/at-end.js";
import { faultOf } from "../support/fails.js";
import { ask, errorOf, rawConnection, rawRequest } from "../support/raw.js";

const SUBJECT = "agent.w1.m1.rpc";
const pair = shared(startPair);

describe("names", () => {
  test.each(["a.b", "a*", ">", "Upper", "", "x".repeat(64), "all", "-a", "a b", "ä"])(
    "the machine or workspace name %j is refused before anything is sent",
    (name) => {
      const { farhand } = pair();
      expect(() => farhand.machine(name)).toThrow(expect.objectContaining({ code: "invalid" }));
      expect(() => farhand.machine(`${name}/m1`)).toThrow(FarhandError);
      expect(() => farhand.machine(`w1/${name}`)).toThrow(/machine name/);
    },
  );

  test("a name of 63 characters is a name", () => {
    expect(pair().farhand.machine("x".repeat(63)).name).toHaveLength(63);
  });
});

describe("messages that our own client would not send", () => {
  test("bytes that are not protobuf are answered with protocol", async () => {
    const nc = await rawConnection(pair().server.url);
    const answer = await ask(nc, SUBJECT, new Uint8Array([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]));
    expect(errorOf(answer)).toMatchObject({ code: "protocol", ran: "no" });
  });

  test("an op that does not exist is unsupported, and the answer says which", async () => {
    const nc = await rawConnection(pair().server.url);
    const known = rawRequest({});
    const answer = await ask(nc, SUBJECT, Buffer.concat([known, Buffer.from([0xc2, 0x3e, 0x00])]));
    expect(errorOf(answer)).toMatchObject({ code: "unsupported", detail: { field: "1000" } });
  });

  test("a request without an op, an id or a deadline is invalid", async () => {
    const nc = await rawConnection(pair().server.url);
    const ping = { $case: "ping" as const, value: {} };
    expect(errorOf(await ask(nc, SUBJECT, rawRequest({})))).toMatchObject({ code: "invalid" });
    const nameless = await ask(nc, SUBJECT, rawRequest({ requestId: "", epoch: -1n, op: ping }));
    expect(errorOf(nameless)?.message).toBe("request_id is empty; epoch is negative");
    const endless = await ask(nc, SUBJECT, rawRequest({ deadlineMs: 0n, op: ping }));
    expect(errorOf(endless)).toMatchObject({ code: "invalid", message: "the request has no deadline" });
    const later = await ask(
      nc,
      SUBJECT,
      rawRequest({ deadlineMs: BigInt(Date.now() + 7_200_000), op: ping }),
    );
    expect(errorOf(later)).toMatchObject({ code: "invalid" });
  });

  test("an op that may not be asked of all machines is refused on the scatter subject", async () => {
    const nc = await rawConnection(pair().server.url);
    const op = { $case: "fsRemove" as const, value: { path: "x", recursive: false, missingOk: false } };
    expect(errorOf(await ask(nc, "agent.w1.all.rpc", rawRequest({ op })))).toMatchObject({ code: "invalid" });
    const ping = await ask(nc, "agent.w1.all.rpc", rawRequest({ op: { $case: "ping", value: {} } }));
    expect(ping.result?.$case).toBe("ping");
  });

  test("every problem of a command is named at once, and nothing runs", async () => {
    const { server, root } = pair();
    const nc = await rawConnection(server.url);
    const value = {
      argv: ["touch\0", "a"],
      cwd: "",
      env: { "A=B": "x" },
      stdin: new Uint8Array(),
      timeoutMs: -5n,
      maxOutputBytes: 2n ** 62n,
      keep: 7 as never,
      graceMs: 31_000n,
      shell: "touch b",
    };
    const error = errorOf(await ask(nc, SUBJECT, rawRequest({ op: { $case: "procRun", value } })));
    expect(error?.code).toBe("invalid");
    for (const said of ["argv.0", "NUL", "env", "timeoutMs", "maxOutputBytes", "keep", "graceMs"]) {
      expect(error?.message).toContain(said);
    }
    expect(existsSync(join(root, "b"))).toBe(false);
  });

  test("negative and huge numbers of a read are invalid", async () => {
    const nc = await rawConnection(pair().server.url);
    for (const range of [
      { offset: -1n, length: undefined },
      { offset: 2n ** 62n, length: undefined },
      { offset: 0n, length: -1n },
    ]) {
      const op = { $case: "fsRead" as const, value: { path: "/etc/hostname", ...range } };
      expect(errorOf(await ask(nc, SUBJECT, rawRequest({ op })))).toMatchObject({ code: "invalid" });
    }
  });
});

describe("paths", () => {
  test("a path that does not exist is not_found", async () => {
    const fault = await faultOf(pair().machine.files.read("no/such/file"));
    expect(fault).toMatchObject({ code: "not_found", machine: "w1/m1", ran: "no" });
    expect(fault.message).toContain("no/such/file does not exist");
  });

  test("a directory is not read as a file, and a file is not listed", async () => {
    const { machine, root } = pair();
    mkdirSync(join(root, "dir"), { recursive: true });
    writeFileSync(join(root, "plain"), "x");
    expect(await faultOf(machine.files.read("dir"))).toMatchObject({
      code: "invalid",
      advice: expect.any(String),
    });
    expect(await faultOf(machine.files.write("dir", "x"))).toMatchObject({ code: "invalid" });
    expect(await faultOf(machine.files.list("plain"))).toMatchObject({ code: "invalid" });
    expect(await faultOf(machine.files.read("plain/below"))).toMatchObject({ code: "invalid" });
  });

  test("a path with NUL, an empty one and one of 5,000 bytes are invalid", async () => {
    const { machine } = pair();
    for (const path of ["a\0b", "", "x".repeat(5_000)]) {
      expect(await faultOf(machine.files.read(path))).toMatchObject({ code: "invalid" });
    }
  });

  test("what the operating system does not permit is denied, with the errno and the user it was refused to", async () => {
    const fault = await faultOf(pair().machine.files.remove("/proc/version"));
    expect(fault).toMatchObject({
      code: "denied",
      detail: { errno: expect.stringMatching(/^(EPERM|EACCES)$/) },
    });
    expect(fault.message).toContain(userInfo().username);
  });
});

describe("commands", () => {
  test("a command that does not exist, a directory that does not and a file that does not are told apart", async () => {
    const { machine } = pair();
    const command = await faultOf(machine.commands.run(["no-such-command"]));
    const cwd = await faultOf(machine.commands.run(["true"], { cwd: "no/such/dir" }));
    const file = await faultOf(machine.files.read("no-such-file"));
    expect([command.code, cwd.code, file.code]).toEqual(["not_found", "not_found", "not_found"]);
    expect([command.detail["what"], cwd.detail["what"], file.detail["what"]]).toEqual([
      "command",
      "cwd",
      undefined,
    ]);
    expect(new Set([command.message, cwd.message, file.message]).size).toBe(3);
  });

  test("options are refused all at once before anything is sent", async () => {
    const options = { timeoutMs: -1, maxOutputBytes: 1.5, keep: "middle", graceMs: Number.NaN, cmd: 1 };
    const fault = await faultOf(pair().machine.commands.run("true", options as never));
    expect(fault.code).toBe("invalid");
    for (const name of ["timeoutMs", "maxOutputBytes", "keep", "graceMs", "cmd"])
      expect(fault.message).toContain(name);
  });

  test("NUL in an argument is invalid", async () => {
    expect(await faultOf(pair().machine.commands.run(["echo", "a\0b"]))).toMatchObject({ code: "invalid" });
  });

  test("arguments reach the program verbatim, whatever a shell would make of them", async () => {
    const words = ["$(id)", "`id`", "; id", "-n", "a\nb", "*", "'\"\\", "é漢😀"];
    const { stdout } = await pair().machine.commands.run(["printf", "%s\\0", ...words]);
    expect(stdout.split("\0").slice(0, -1)).toEqual(words);
  });
});

test("a second request with the same id and another body is a conflict, and does not run", async () => {
  const { machine, root } = pair();
  await machine.files.write("same-id", "first", { requestId: "same" });
  const fault = await faultOf(machine.files.write("same-id", "second", { requestId: "same" }));
  expect(fault).toMatchObject({ code: "conflict", requestId: "same" });
  expect(readFileSync(join(root, "same-id"), "utf8")).toBe("first");
});

test("a request too large for one message is too_large, with both sizes", async () => {
  const { machine, root } = pair();
  const fault = await faultOf(machine.files.write("big", new Uint8Array(3_000_000)));
  expect(fault).toMatchObject({ code: "too_large", ran: "no" });
  expect(Number(fault.detail["bytes"])).toBeGreaterThan(Number(fault.detail["limit"]));
  expect(existsSync(join(root, "big"))).toBe(false);
});
