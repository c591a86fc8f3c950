import { expect, test } from "vitest";
import { revokeMachine } from "../../../control/authority/revoke.js";
import { agentOf, connectAs, startOperatorBus } from "../../support/operator.js";

test("smoke", async () => {
  const bus = await startOperatorBus();
  const ref = { workspace: "w1", machine: "m1" };
  const { key, enrolment } = await bus.enrol(ref);
  const nc = await connectAs(bus.url, agentOf(ref, key, enrolment.jwt));
  const t = performance.now();
  const closed = nc.closed();
  await revokeMachine(bus.authority, ref, "test");
  await closed;
  console.log("cut after", performance.now() - t);
  expect(true).toBe(true);
});
