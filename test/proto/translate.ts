import protobuf from "protobufjs";
import { isOptional, realOneofs } from "./schema.js";
import type { Sample } from "./samples.js";

const isRecord = (value: unknown): value is Sample => typeof value === "object" && value !== null;

const record = (value: unknown): Sample => {
  if (!isRecord(value)) throw new TypeError(`${String(value)} is not a message`);
  return value;
};

const mapped = (field: protobuf.Field, value: unknown, one: (value: unknown) => unknown): unknown => {
  if (value === undefined) return undefined;
  if (field.map)
    return Object.fromEntries(Object.entries(record(value)).map(([key, item]) => [key, one(item)]));
  if (Array.isArray(value)) return value.map((item) => one(item));
  return one(value);
};

/** From the form of our generated code to the one that protobufjs makes messages from. */
export const toProtobufjs = (type: protobuf.Type, message: unknown): Sample => {
  const from = record(message);
  const flat: Sample = { ...from };
  for (const { name } of realOneofs(type)) {
    delete flat[name];
    const chosen = from[name];
    if (isRecord(chosen)) flat[String(chosen["$case"])] = chosen["value"];
  }
  const one = ({ resolvedType }: protobuf.Field, value: unknown): unknown => {
    if (resolvedType instanceof protobuf.Type) return toProtobufjs(resolvedType, value);
    return typeof value === "bigint" ? String(value) : value;
  };
  return Object.fromEntries(
    type.fieldsArray
      .filter(({ name }) => flat[name] !== undefined)
      .map((field) => [field.name, mapped(field, flat[field.name], (value) => one(field, value))]),
  );
};

/** From what protobufjs decoded to the form of our generated code. */
export const fromProtobufjs = (type: protobuf.Type, message: protobuf.Message): Sample => {
  // Defaults are filled in, but for fields that tell absent from default.
  const flat: Sample = type.toObject(message, { longs: BigInt, defaults: true, arrays: true, objects: true });
  const isAbsent = (field: protobuf.Field): boolean =>
    (field.partOf !== null || field.resolvedType instanceof protobuf.Type) &&
    !field.repeated &&
    !Object.hasOwn(message, field.name);
  const one = ({ resolvedType }: protobuf.Field, value: unknown): unknown =>
    resolvedType instanceof protobuf.Type
      ? fromProtobufjs(resolvedType, resolvedType.create(record(value)))
      : value;
  const raw = record(message);
  const values = new Map(
    type.fieldsArray.map((field) => {
      const source = field.resolvedType instanceof protobuf.Type ? raw : flat;
      return [
        field,
        isAbsent(field) ? undefined : mapped(field, source[field.name], (value) => one(field, value)),
      ];
    }),
  );
  const oneofs = realOneofs(type).map(({ name, fieldsArray }) => {
    const chosen = fieldsArray.find((field) => values.get(field) !== undefined);
    return [name, chosen && { $case: chosen.name, value: values.get(chosen) }];
  });
  const others = [...values].filter(([field]) => field.partOf === null || isOptional(field));
  return Object.fromEntries([...others.map(([{ name }, value]) => [name, value]), ...oneofs]);
};

/** Decoded values without what differs in form only: the class of bytes, and the place for unknown fields. */
export const plain = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (Array.isArray(value)) return value.map((item) => plain(item));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([name]) => name !== "_unknownFields");
  return Object.fromEntries(entries.map(([name, item]) => [name, plain(item)]));
};
