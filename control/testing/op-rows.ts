import { FarhandError } from "../../proto/farhand-error.js";
import type { OpName } from "../envelope.js";

/** What an owner consents to as a whole, named as on the client's machine. */
export const FAMILIES = ["commands", "files"] as const;
export type Family = (typeof FAMILIES)[number];

export interface OpRow {
  /** Whether it can change anything: then it is fenced and run at most once. */
  readonly mutates: boolean;
  readonly family?: Family;
}

/** The ops that a test machine plays. */
export const OP_ROWS: { readonly [K in OpName]?: OpRow } = {
  ping: { mutates: false },
  describe: { mutates: false },
  cancel: { mutates: false },
  procRun: { mutates: true, family: "commands" },
  fsStat: { mutates: false, family: "files" },
  fsRead: { mutates: false, family: "files" },
  fsWrite: { mutates: true, family: "files" },
  fsList: { mutates: false, family: "files" },
  fsMkdir: { mutates: true, family: "files" },
  fsMove: { mutates: true, family: "files" },
  fsRemove: { mutates: true, family: "files" },
  fsChmod: { mutates: true, family: "files" },
};

export const notPlayed = (name: string): FarhandError =>
  new FarhandError("unsupported", `test machines do not play ${name}`, { detail: { op: name } });

export const opRow = (name: OpName): OpRow => {
  const row = OP_ROWS[name];
  if (row === undefined) throw notPlayed(name);
  return row;
};
