import { expect, test } from "vitest";
import { SYSTEM_CLOCK } from "../../../control/clock.js";
import { createTestFarhand } from "../../../control/testing/index.js";

const start = () => {
  const { farhand, machine, setLink } = createTestFarhand();
  const played = machine("box");
  played.onRun(/./, { stdout: "ran" });
  return { played, setLink, farhand, box: farhand.machine("box") };
};

/** A clock that can be put forward. */
const skippingClock = () => {
  let skipped = 0;
  return {
    now: () => SYSTEM_CLOCK.now() + skipped,
    monotonic: () => SYSTEM_CLOCK.monotonic() + skipped,
    sleep: SYSTEM_CLOCK.sleep,
    skip: (ms: number) => void (skipped += ms),
  };
};

test("a machine that was never added is offline, never not found", async () => {
  const { farhand } = start();
  await expect(farhand.machine("other").files.read("/etc/hostname")).rejects.toMatchObject({
    code: "agent_offline",
    ran: "no",
  });
});

test("a machine that goes offline is offline at once, although it just answered", async () => {
  const { played, box } = start();
  await box.ping();
  played.set({ presence: "offline" });
  await expect(box.ping()).rejects.toMatchObject({ code: "agent_offline", machine: "default/box" });
  played.set({ presence: "online" });
  await expect(box.ping()).resolves.toBeGreaterThanOrEqual(0);
});

test("a reconnecting machine does not answer, and nothing ran", async () => {
  const { played, box } = start();
  played.set({ presence: "reconnecting" });
  await expect(box.commands.run("x")).rejects.toMatchObject({ code: "agent_reconnecting", ran: "no" });
  expect(played.requests).toEqual([]);
});

test("a machine that comes back while the client tries again answers the same request", async () => {
  const { played, box } = start();
  played.set({ presence: "reconnecting" });
  const run = box.commands.run("x");
  setTimeout(() => played.set({ presence: "online" }), 50);
  expect((await run).stdout).toBe("ran");
});

test("a machine that has been reconnecting for too long is offline", async () => {
  const clock = skippingClock();
  const { farhand, machine } = createTestFarhand({ clock });
  machine("box").set({ presence: "reconnecting" });
  clock.skip(31_000);
  await expect(farhand.machine("box").ping()).rejects.toMatchObject({ code: "agent_offline" });
});

test("a machine that goes away during a command leaves the caller not knowing", async () => {
  const { played, box } = start();
  played.onRun("x", () => {
    played.set({ presence: "reconnecting" });
    return {};
  });
  await expect(box.commands.run("x")).rejects.toMatchObject({ code: "agent_reconnecting", ran: "maybe" });
});

test("a draining machine refuses what changes something, and still answers the rest", async () => {
  const { played, box } = start();
  played.files.set("a", "text");
  played.set({ draining: true });
  await expect(box.commands.run("x")).rejects.toMatchObject({ code: "draining", ran: "no" });
  await expect(box.files.write("a", "")).rejects.toMatchObject({ code: "draining" });
  expect(await box.files.read("a")).toBe("text");
});

test("a refusal is not remembered: the same request runs when the machine drains no more", async () => {
  const { played, box } = start();
  played.set({ draining: true });
  await expect(box.commands.run("x", { requestId: "r-1" })).rejects.toMatchObject({ code: "draining" });
  played.set({ draining: false });
  expect((await box.commands.run("x", { requestId: "r-1" })).stdout).toBe("ran");
});

test("a family without consent is refused, and describe says why", async () => {
  const { played, box } = start();
  played.files.set("a", "text");
  played.set({ consentRequired: ["files"] });
  await expect(box.files.read("a")).rejects.toMatchObject({
    code: "consent_required",
    reason: "consent_required",
    ran: "no",
  });
  expect((await box.commands.run("x")).stdout).toBe("ran");
  const { capabilities } = await box.describe();
  expect(capabilities["files"]).toEqual({ available: false, reason: "consent_required" });
  expect(capabilities["commands"]).toEqual({ available: true, reason: null });
  played.set({ consentRequired: [] });
  expect(await box.files.read("a")).toBe("text");
});

test("latency delays an answer", async () => {
  const { played, box } = start();
  played.set({ latencyMs: 60 });
  expect(await box.ping()).toBeGreaterThanOrEqual(55);
});

test("a request that takes too long to arrive does not run, and the caller cannot know", async () => {
  const { played, box } = start();
  played.set({ latencyMs: 100 });
  await expect(box.files.write("a", "x", { timeoutMs: 20 })).rejects.toMatchObject({
    code: "agent_reconnecting",
    ran: "maybe",
  });
  await expect.poll(() => played.requests.at(-1)?.outcome).toBe("expired");
  expect(played.files.get("a")).toBeUndefined();
});

test("a lost answer leaves the caller not knowing, and the same request id brings it back", async () => {
  const { played, box } = start();
  let runs = 0;
  played.onRun("deploy", () => ({ stdout: `run ${++runs}` }));
  played.dropNextReply();
  await expect(box.commands.run("deploy", { requestId: "r-1" })).rejects.toMatchObject({
    code: "agent_reconnecting",
    ran: "maybe",
    requestId: "r-1",
  });
  expect((await box.commands.run("deploy", { requestId: "r-1" })).stdout).toBe("run 1");
  expect((await box.commands.run("deploy")).stdout).toBe("run 2");
});

test("a link that is down is not blamed on the machine", async () => {
  const { played, setLink, box } = start();
  setLink("down");
  await expect(box.commands.run("x")).rejects.toMatchObject({ code: "control_unavailable", ran: "no" });
  setLink("up");
  expect((await box.commands.run("x")).stdout).toBe("ran");
  expect(played.requests.length).toBe(1);
});

test("a link that drops during a command brings its one result when it is back", async () => {
  const { played, setLink, box } = start();
  let runs = 0;
  played.onRun("deploy", () => {
    setLink("down");
    setTimeout(setLink, 150, "up");
    return { stdout: `run ${++runs}` };
  });
  expect((await box.commands.run("deploy")).stdout).toBe("run 1");
  expect(played.requests.map(({ outcome }) => outcome)).toEqual(["ok", "ok"]);
});

test("a client that was closed sends nothing", async () => {
  const { played, farhand, box } = start();
  await farhand.close();
  await expect(box.ping()).rejects.toMatchObject({ code: "control_unavailable" });
  expect(played.requests).toEqual([]);
});
