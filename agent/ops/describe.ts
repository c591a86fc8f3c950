import { arch, hostname, platform, release, userInfo } from "node:os";
import { LIMITS } from "../../proto/limits.js";
import type { Op } from "./op.js";

/** Every capability is named, with a reason where it is not available; nothing is ever absent. */
const CAPABILITIES = [
  { name: "commands", available: true, reason: "" },
  { name: "files", available: true, reason: "" },
  ...["processes", "terminals", "git", "desktop_view", "desktop_control", "recording", "ports"].map(
    (name) => ({
      name,
      available: false,
      reason: "unsupported",
    }),
  ),
];

const limits = (maxReplyBytes: number): Record<string, bigint> => ({
  maxReplyBytes: BigInt(maxReplyBytes),
  runTimeoutMs: BigInt(LIMITS.runTimeoutMs.max),
  runOutputBytes: BigInt(LIMITS.runOutputBytes.max),
  processes: BigInt(LIMITS.processes),
  calls: BigInt(LIMITS.calls),
  listEntries: BigInt(LIMITS.listEntries.max),
});

/** The list of ops comes from the table, which itself lists this op. */
export const describe = (opNames: () => string[]): Op<"describe"> => ({
  mutates: false,
  scatter: true,
  run: async (_args, call, host) => ({
    workspace: host.about.workspace,
    machine: host.about.machine,
    hostname: hostname(),
    os: platform(),
    osVersion: release(),
    arch: arch(),
    user: userInfo().username,
    root: host.files.root,
    startedMs: BigInt(host.about.startedMs),
    ops: opNames(),
    capabilities: CAPABILITIES,
    limits: limits(call.maxReplyBytes),
    treeMethod: host.processes.treeMethod,
  }),
});
