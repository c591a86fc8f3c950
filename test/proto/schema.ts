import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";
import * as envelope from "../../proto/gen/envelope.js";
import * as files from "../../proto/gen/files.js";
import * as machine from "../../proto/gen/machine.js";
import * as processes from "../../proto/gen/process.js";

/** What our generated code offers for a message. */
export interface Codec {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

const ROOTS = ["ControlRequest", "ControlResponse", "Presence", "Claim", "SeenQuery", "SeenReply"];
const PACKAGE = "farhand.v1";

/** The .proto files as protobufjs reads them, without our generated code. */
export const loadSchema = (): protobuf.Root => {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, name) => fileURLToPath(new URL(`../../proto/${name}`, import.meta.url));
  root.loadSync(["envelope.proto", "machine.proto"]);
  root.resolveAll();
  return root;
};

/** Every message that can be part of what goes over the bus, each once. */
export const reachable = (root: protobuf.Root): protobuf.Type[] => {
  const found = new Set(ROOTS.map((name) => root.lookupType(`${PACKAGE}.${name}`)));
  // A set that grows while it is walked is walked to its new end.
  for (const type of found) {
    for (const { resolvedType } of type.fieldsArray) {
      if (resolvedType instanceof protobuf.Type) found.add(resolvedType);
    }
  }
  return [...found];
};

export const nameOf = (type: protobuf.Type): string => type.fullName.slice(`.${PACKAGE}.`.length);

const isCodec = (value: unknown): value is Codec =>
  typeof value === "object" && value !== null && "encode" in value && "decode" in value;

const GENERATED = new Map<string, unknown>(
  [envelope, files, machine, processes].flatMap((module) => Object.entries(module)),
);

export const codecOf = (type: protobuf.Type): Codec => {
  const codec = GENERATED.get(nameOf(type).replaceAll(".", "_"));
  if (!isCodec(codec)) throw new Error(`there is no generated code for ${nameOf(type)}`);
  return codec;
};

/** The oneofs that the .proto files write down, without those that stand for `optional`. */
export const realOneofs = (type: protobuf.Type): protobuf.OneOf[] =>
  type.oneofsArray.filter(({ isProto3Optional }) => !isProto3Optional);

export const isOptional = (field: protobuf.Field): boolean => field.partOf?.isProto3Optional === true;
