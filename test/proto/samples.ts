import protobuf from "protobufjs";
import { isOptional, realOneofs } from "./schema.js";

/** Values at the ends of what a field can hold, for each type that the .proto files use. */
const SCALARS: Readonly<Record<string, readonly [unknown, ...unknown[]]>> = {
  string: ["plain", "", "漢字 😀 \u0000 é", "x".repeat(300)],
  bytes: [
    Buffer.from([0, 1, 127, 128, 255]),
    Buffer.alloc(0),
    Buffer.from([0xc3, 0x28]),
    Buffer.alloc(300, 7),
  ],
  bool: [true, false],
  int32: [7, 0, -1, 2 ** 31 - 1, -(2 ** 31)],
  int64: [7n, 0n, -1n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)],
  double: [0.5, 0, -1e-300, Number.MAX_VALUE, Infinity],
};

/** A number that no version of ours has given a name. */
const UNKNOWN_ENUM_VALUE = 99;

export type Sample = Record<string, unknown>;

const singles = (field: protobuf.Field, round: number): unknown => {
  const { resolvedType, type } = field;
  if (resolvedType instanceof protobuf.Type)
    return samplesOf(resolvedType).at(round) ?? sampleOf(resolvedType, round);
  const values =
    resolvedType instanceof protobuf.Enum
      ? [...Object.values(resolvedType.values), UNKNOWN_ENUM_VALUE]
      : SCALARS[type];
  if (values === undefined) throw new Error(`${field.fullName}: there are no samples of ${type}`);
  return values[round % values.length];
};

const valueOf = (field: protobuf.Field, round: number): unknown => {
  if (field.map) {
    const entries = [0, 1, 2].map((at) => [`key ${at}`, singles(field, round + at)]);
    return round === 0 ? {} : Object.fromEntries([["", singles(field, round)], ...entries]);
  }
  if (field.repeated) return round === 0 ? [] : [0, 1, 2].map((at) => singles(field, round + at));
  if (isOptional(field) && round === 0) return undefined;
  return singles(field, round);
};

/** A message as our generated code has it, without its oneofs. */
const sampleOf = (type: protobuf.Type, round: number): Sample => {
  const inOneof = new Set(realOneofs(type).flatMap(({ fieldsArray }) => fieldsArray));
  const plain = type.fieldsArray.filter((field) => !inOneof.has(field));
  return Object.fromEntries([
    ...plain.map((field) => [field.name, valueOf(field, round)]),
    ...realOneofs(type).map(({ name }) => [name, undefined]),
  ]);
};

const ROUNDS = 6;

/** Messages that together hold every case of every oneof and every end of every type. */
export const samplesOf = (type: protobuf.Type): Sample[] => {
  const rounds = Array.from({ length: ROUNDS }, (_, round) => sampleOf(type, round));
  const cases = realOneofs(type).flatMap((oneof) =>
    oneof.fieldsArray.flatMap((field) =>
      rounds.map((sample, round) => ({
        ...sample,
        [oneof.name]: { $case: field.name, value: singles(field, round) },
      })),
    ),
  );
  return [...rounds, ...cases];
};
