import protobuf from "protobufjs";
import { describe, expect, test } from "vitest";
import { OPS } from "../../agent/ops/table.js";
import { Claim } from "../../proto/gen/machine.js";
import { samplesOf } from "./samples.js";
import { codecOf, loadSchema, nameOf, reachable } from "./schema.js";
import { fromProtobufjs, plain, toProtobufjs } from "./translate.js";

const schema = loadSchema();
const messages = reachable(schema);
const request = schema.lookupType("farhand.v1.ControlRequest");
const response = schema.lookupType("farhand.v1.ControlResponse");

const casesOf = (type: protobuf.Type, oneof: string) =>
  (type.oneofs[oneof]?.fieldsArray ?? []).map(({ name, id }) => ({ name, id }));
const ops = casesOf(request, "op");

describe.each(messages.map((type) => ({ name: nameOf(type), type })))("$name", ({ type }) => {
  const codec = codecOf(type);

  test("bytes of our code mean the same to protobufjs", () => {
    for (const sample of samplesOf(type)) {
      const bytes = codec.encode(sample).finish();
      expect(plain(fromProtobufjs(type, type.decode(bytes)))).toStrictEqual(sample);
    }
  });

  test("bytes of protobufjs mean the same to our code", () => {
    for (const sample of samplesOf(type)) {
      const bytes = type.encode(type.fromObject(toProtobufjs(type, sample))).finish();
      expect(plain(codec.decode(bytes))).toStrictEqual(sample);
    }
  });

  test("fields of a newer version pass through our code unharmed", () => {
    const newer = loadSchema().lookupType(type.fullName);
    newer.add(new protobuf.Field("newerText", 9_001, "string"));
    newer.add(new protobuf.Field("newerNumbers", 9_002, "sint64", "repeated"));
    for (const sample of samplesOf(type)) {
      const message = newer.fromObject({
        ...toProtobufjs(type, sample),
        newerText: "é",
        newerNumbers: [-1, 2 ** 40],
      });
      const through = codec.encode(codec.decode(newer.encode(message).finish())).finish();
      const { newerText, newerNumbers, ...known } = fromProtobufjs(newer, newer.decode(through));
      expect({ newerText, newerNumbers }).toEqual({ newerText: "é", newerNumbers: [-1n, 2n ** 40n] });
      expect(plain(known)).toStrictEqual(sample);
    }
  });
});

test("every op of the proto is in the agent's table, and nothing else is", () => {
  expect(ops.length).toBeGreaterThan(10);
  expect(Object.keys(OPS).toSorted()).toEqual(ops.map(({ name }) => name).toSorted());
});

test("every op is answered by a result of its own name and number", () => {
  expect(casesOf(response, "result").filter(({ name }) => name !== "error")).toEqual(ops);
});

test("the samples hold every op, and every kind of result", () => {
  const casesIn = (type: protobuf.Type, oneof: string) =>
    new Set(samplesOf(type).map((sample) => Object(sample[oneof]).$case));
  expect(casesIn(request, "op")).toEqual(new Set([undefined, ...ops.map(({ name }) => name)]));
  expect(casesIn(response, "result")).toEqual(new Set([undefined, "error", ...ops.map(({ name }) => name)]));
});

test.each([-(2n ** 63n), -1n, 0n, 2n ** 53n + 1n, 2n ** 63n - 1n])(
  "the int64 %d comes back digit for digit",
  (n) => {
    const bytes = Claim.encode({ instanceId: "", generation: n, hostname: "" }).finish();
    expect(Claim.decode(bytes).generation).toBe(n);
    const type = schema.lookupType("farhand.v1.Claim");
    expect(String(type.toObject(type.decode(bytes), { longs: String, defaults: true })["generation"])).toBe(
      String(n),
    );
  },
);

test.each([2n ** 63n, -(2n ** 63n) - 1n])("%d does not fit an int64 and is refused, not wrapped", (n) => {
  expect(() => Claim.encode({ instanceId: "", generation: n, hostname: "" })).toThrow(/int64/);
});
