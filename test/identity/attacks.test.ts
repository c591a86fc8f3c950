import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { headers, type NatsConnection } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { OPS } from "../../agent/ops/table.js";
import { createSessions } from "../../control/sessions.js";
import { AUTH_HEADER } from "../../proto/authentic.js";
import { ControlRequest, ControlResponse } from "../../proto/gen/envelope.js";
import { faultOf } from "../support/fails.js";
import { shared } from "../support/at-end.js";
import { joinMachine, machineFor, startJoined } from "../support/joined.js";
import { connectAs, controlOf } from "../support/operator.js";
import { rawRequest } from "../support/raw.js";
import { mintCredentials } from "../support/certificates.js";
import { createSigningKey } from "../../proto/nkey.js";
import { until } from "../support/until.js";

const SUBJECT = "agent.w1.m1.rpc";
const REF = { workspace: "w1", machine: "m1" };
const pair = shared(startJoined);

type Op = NonNullable<ControlRequest["op"]>;

/** An op of this name with empty arguments: it never gets so far that they matter. */
const emptyOp = (name: string): Op => {
  const [field] = Object.entries(OPS).flatMap(([known], at) => (known === name ? [at] : []));
  if (field === undefined) throw new Error(name);
  return {
    $case: name,
    value: { argv: [], env: {}, stdin: Buffer.alloc(0), path: "x", data: Buffer.alloc(0) },
  } as unknown as Op;
};

const send = async (
  nc: NatsConnection,
  subject: string,
  payload: Uint8Array,
  proof?: string,
  reply?: string,
): Promise<ControlResponse> => {
  const header = headers();
  if (proof !== undefined) header.set(AUTH_HEADER, proof);
  const options = {
    timeout: 5_000,
    ...(proof === undefined ? {} : { headers: header }),
    ...(reply === undefined ? {} : { noMux: true, reply }),
  };
  return ControlResponse.decode((await nc.request(subject, payload, options)).data);
};

const codeOf = ({ result }: ControlResponse): string | undefined =>
  result?.$case === "error" ? result.value.code : result?.$case;

describe("attack 1: requests without credentials", () => {
  test.each(Object.keys(OPS))(
    "%s without a proof is refused, even to one with full rights on the bus",
    async (name) => {
      const nc = await connectAs(pair().bus.url, pair().bus.busOwner());
      const answer = await send(nc, SUBJECT, rawRequest({ op: emptyOp(name) }));
      expect(codeOf(answer)).toBe("unauthenticated");
    },
  );

  test("a connection without a credential is not let onto the bus", async () => {
    const { url } = pair().bus;
    const rpc = await import("@nats-io/transport-node");
    await expect(rpc.connect({ servers: url, reconnect: false })).rejects.toThrow(/[Aa]uthoriz/);
  });
});

const writeOp: Op = {
  $case: "fsWrite",
  value: {
    path: "log",
    data: Buffer.from("x"),
    append: true,
    ifMatch: "",
    ifNoneMatch: false,
    createParents: false,
  },
};

/** Lets a request through and keeps a copy of it, as somebody on the bus could. */
const capture = async (nc: NatsConnection, run: () => Promise<unknown>) => {
  const copies: { data: Uint8Array; proof: string; reply: string }[] = [];
  const subscription = nc.subscribe(SUBJECT, {
    callback: (_error, message) =>
      void copies.push({
        data: message.data,
        proof: message.headers?.get(AUTH_HEADER) ?? "",
        reply: message.reply ?? "",
      }),
  });
  await nc.flush();
  await run();
  // What was sent before has arrived here when the server has answered this.
  await nc.flush();
  subscription.unsubscribe();
  return copies;
};

const resend = (
  nc: NatsConnection,
  subject: string,
  { data, proof, reply }: { data: Uint8Array; proof: string; reply: string },
): void => {
  const header = headers();
  header.set(AUTH_HEADER, proof);
  nc.publish(subject, data, { headers: header, reply });
};

describe("attack 3: a captured request sent again", () => {
  test("at once, after a restart of the agent and after its deadline it runs no further time", async () => {
    const { bus, joined, agent, credentials } = await startJoined();
    const owner = await connectAs(bus.url, bus.busOwner());
    const machine = machineFor(bus, credentials);
    const copies = await capture(owner, async () => {
      await machine.files.write("log", "x", { append: true, timeoutMs: 2_000 });
      await machine.files.write("log", "x", { append: true, timeoutMs: 2_000 });
    });
    expect(copies.map(({ proof }) => proof.slice(0, 2))).toEqual(["h1", "s1"]);
    const log = (): string => readFileSync(join(joined.root, "log"), "utf8");
    expect(log()).toBe("xx");
    const again = async (): Promise<void> => {
      for (const copy of copies) for (let n = 0; n < 3; n++) resend(owner, SUBJECT, copy);
      await owner.flush();
      await machine.ping();
    };
    await again();
    expect(log()).toBe("xx");
    await agent.kill("SIGKILL");
    await joined.run();
    await again();
    expect(log()).toBe("xx");
    await until(
      "the deadlines have passed",
      () => Date.now() > Number(ControlRequest.decode(copies[1]?.data ?? new Uint8Array()).deadlineMs),
    );
    await again();
    expect(log()).toBe("xx");
  });
});

describe("attack 4: a request for one machine sent to another", () => {
  test("is refused there", async () => {
    const { bus, credentials } = pair();
    const other = await joinMachine(bus, { name: "m2" });
    await other.run();
    const owner = await connectAs(bus.url, bus.busOwner());
    const machine = machineFor(bus, credentials);
    const [copy] = await capture(owner, () => machine.files.write("redirected", "x"));
    if (copy === undefined) throw new Error("nothing was captured");
    resend(owner, "agent.w1.m2.rpc", copy);
    await owner.flush();
    await machineFor(bus, credentials, "m2").ping();
    expect(existsSync(join(other.root, "redirected"))).toBe(false);
  });
});

describe("attack 5: forged replies", () => {
  test("are ignored, whoever sends them, and the true answer is believed", async () => {
    const { bus, credentials } = pair();
    const owner = await connectAs(bus.url, bus.busOwner());
    let forgeries = 0;
    owner.subscribe(SUBJECT, {
      callback: (_error, message) => {
        const { requestId } = ControlRequest.decode(message.data);
        const forged = ControlResponse.encode(
          ControlResponse.fromPartial({
            requestId,
            agentTimeMs: BigInt(Date.now() + 3_600_000),
            result: { $case: "fsRead", value: { data: Buffer.from("forged"), eof: true, size: 6n } },
          }),
        ).finish();
        for (const proof of [undefined, "", "a1 AAAA", "w1 a b c d"]) {
          const header = headers();
          if (proof !== undefined) header.set(AUTH_HEADER, proof);
          message.respond(forged, proof === undefined ? {} : { headers: header });
          forgeries++;
        }
      },
    });
    await owner.flush();
    const machine = machineFor(bus, credentials);
    await machine.files.write("truth", "true");
    for (let n = 0; n < 5; n++) expect(await machine.files.read("truth")).toBe("true");
    expect(forgeries).toBeGreaterThan(20);
  });

  test("from one who plays a machine without its key leave the caller without an answer", async () => {
    const { bus, credentials } = pair();
    const owner = await connectAs(bus.url, bus.busOwner());
    const [agentAuthority, key] = [createSigningKey("account"), createSigningKey("user")];
    owner.subscribe("agent.w1.ghost.rpc", {
      callback: (_error, message) => {
        const { requestId } = ControlRequest.decode(message.data);
        message.respond(
          ControlResponse.encode(
            ControlResponse.fromPartial({ requestId, result: { $case: "ping", value: {} } }),
          ).finish(),
        );
      },
    });
    await owner.flush();
    expect(key.publicKey).not.toBe(agentAuthority.publicKey);
    const fault = await faultOf(machineFor(bus, credentials, "ghost").ping({ timeoutMs: 300 }));
    expect(fault).toMatchObject({ code: "agent_reconnecting", ran: "maybe" });
    expect(fault.message).toContain("1 answers that it did not prove to be its own were ignored");
  });
});

describe("a party with full rights on the bus but no credential of the workspace", () => {
  test("cannot make an agent run anything with credentials of its own making", async () => {
    const { bus, joined } = pair();
    const owner = await connectAs(bus.url, bus.busOwner());
    const credentials = mintCredentials(createSigningKey("account"), bus.keys.agentSigner.publicKey);
    const sessions = createSessions({ credentials, now: Date.now, skewMs: () => 0 });
    const payload = rawRequest({ op: writeOp });
    const reply = `${bus.busOwner().inboxPrefix}.forged`;
    const answered = new Promise<ControlResponse>((resolve) =>
      owner.subscribe(reply, {
        max: 1,
        callback: (_error, message) => resolve(ControlResponse.decode(message.data)),
      }),
    );
    resend(owner, SUBJECT, {
      data: payload,
      reply,
      proof: sessions.prove(REF, { subject: SUBJECT, reply, payload }).proof,
    });
    expect(codeOf(await answered)).toBe("unauthenticated");
    expect(existsSync(join(joined.root, "log"))).toBe(false);
  });
});

describe("workspaces", () => {
  test("a user of one cannot see, reach or list a machine of another", async () => {
    const { bus } = pair();
    const neighbour = await joinMachine(bus, { name: "m1", workspace: "w2" });
    await neighbour.run();
    const stranger = await bus.control({ workspace: "w2" });
    expect(await machineFor(bus, stranger).ping()).toBeGreaterThan(0);
    const toOther = machineFor(bus, stranger, "w1/m1");
    const fault = await faultOf(toOther.files.write("crossed", "x", { timeoutMs: 500 }));
    expect(fault.code).not.toBe("not_found");
    expect(existsSync(join(pair().joined.root, "crossed"))).toBe(false);
    const nc = await connectAs(bus.url, controlOf(stranger));
    let heard = 0;
    for (const subject of [
      "agent.w1.>",
      "agentev.w1.>",
      "agent.*.*.rpc",
      "agentev.>",
      "_INBOX_agent.w1.m1.>",
      "control.>",
    ]) {
      nc.subscribe(subject, { callback: (error) => void (error === null && heard++) });
    }
    await machineFor(bus, pair().credentials).commands.run("true");
    await nc.flush();
    expect(heard).toBe(0);
  });
});

describe("roles", () => {
  test("a reader may look and change nothing; every mutating op is refused by name", async () => {
    const { bus, joined } = pair();
    const machine = machineFor(bus, await bus.control({ role: "reader" }));
    expect(await machine.files.exists(".")).toBe(true);
    for (const change of [
      () => machine.files.write("by-reader", "x"),
      () => machine.commands.run("touch by-reader"),
      () => machine.files.makeDir("by-reader"),
      () => machine.files.remove("."),
    ]) {
      expect(await faultOf(change())).toMatchObject({ code: "denied", ran: "no" });
    }
    expect(existsSync(join(joined.root, "by-reader"))).toBe(false);
  });
});

describe("sessions", () => {
  test("an agent that restarted is greeted again by itself, and the request runs once", async () => {
    const { joined, agent, machine } = await startJoined();
    await machine.files.write("log", "1", { append: true });
    await agent.kill("SIGKILL");
    await joined.run();
    await machine.files.write("log", "2", { append: true });
    expect(readFileSync(join(joined.root, "log"), "utf8")).toBe("12");
  });
});
