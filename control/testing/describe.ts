import type { DescribeResult } from "../../proto/gen/machine.js";
import { LIMITS } from "../../proto/limits.js";
import type { MachineRef } from "../../proto/subjects.js";
import { FAMILIES, type Family, OP_ROWS } from "./op-rows.js";

const NOT_PLAYED = [
  "processes",
  "terminals",
  "git",
  "desktop_view",
  "desktop_control",
  "recording",
  "ports",
] as const;

export interface Described {
  readonly ref: MachineRef;
  readonly root: string;
  readonly startedMs: number;
  readonly consentRequired: readonly Family[];
  readonly maxReplyBytes: number;
}

export const describe = ({
  ref,
  root,
  startedMs,
  consentRequired,
  maxReplyBytes,
}: Described): DescribeResult => ({
  workspace: ref.workspace,
  machine: ref.machine,
  hostname: ref.machine,
  os: "linux",
  osVersion: "test",
  arch: "x64",
  user: "test",
  root,
  startedMs: BigInt(Math.round(startedMs)),
  ops: Object.keys(OP_ROWS),
  capabilities: [
    ...FAMILIES.map((name) => {
      const available = !consentRequired.includes(name);
      return { name, available, reason: available ? "" : "consent_required" };
    }),
    ...NOT_PLAYED.map((name) => ({ name, available: false, reason: "unsupported" })),
  ],
  limits: {
    maxReplyBytes: BigInt(maxReplyBytes),
    runTimeoutMs: BigInt(LIMITS.runTimeoutMs.max),
    runOutputBytes: BigInt(LIMITS.runOutputBytes.max),
    processes: BigInt(LIMITS.processes),
    calls: BigInt(LIMITS.calls),
    listEntries: BigInt(LIMITS.listEntries.max),
  },
  treeMethod: "test",
});
