import { FarhandError } from "./farhand-error.js";

/** A machine, as `workspace/machine`. */
export interface MachineRef {
  readonly workspace: string;
  readonly machine: string;
}

const ID = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** The machine id that would collide with the scatter subject. */
const RESERVED = new Set(["all"]);

export const idProblem = (id: string): string | undefined => {
  if (!ID.test(id)) {
    return "must be 1 to 63 characters of a-z, 0-9, _ and -, and begin with a letter or digit";
  }
  if (RESERVED.has(id)) return "is a reserved word";
  return undefined;
};

/** Refuses whatever could reach another subject than the one meant. */
export const checkId = (kind: "workspace" | "machine", id: string): string => {
  const problem = idProblem(id);
  if (problem !== undefined) {
    throw new FarhandError("invalid", `${kind} name ${JSON.stringify(id.slice(0, 80))} ${problem}`);
  }
  return id;
};

/** Reads `machine` or `workspace/machine`. */
export const parseMachineRef = (text: string, defaultWorkspace: string): MachineRef => {
  const slash = text.indexOf("/");
  return {
    workspace: checkId("workspace", slash < 0 ? defaultWorkspace : text.slice(0, slash)),
    machine: checkId("machine", slash < 0 ? text : text.slice(slash + 1)),
  };
};

export const formatMachineRef = (ref: MachineRef): string => `${ref.workspace}/${ref.machine}`;

const own = (prefix: string, ref: MachineRef): string =>
  `${prefix}.${checkId("workspace", ref.workspace)}.${checkId("machine", ref.machine)}`;

export const subjects = {
  rpc: (ref: MachineRef): string => `${own("agent", ref)}.rpc`,
  /** Many replies: ping and describe only. */
  scatter: (workspace: string): string => `agent.${checkId("workspace", workspace)}.all.rpc`,
  presence: (ref: MachineRef): string => `${own("agentev", ref)}.presence`,
  presenceOfAll: "agentev.*.*.presence",
  claim: (ref: MachineRef): string => `${own("agentev", ref)}.claim`,
  /** A service of the control plane: when was a machine last heard of? */
  seen: (workspace: string): string => `control.${checkId("workspace", workspace)}.seen`,
  seenOfAll: "control.*.seen",
  /** Services of the control plane for machines: a join token becomes an identity; a JWT is renewed. */
  redeem: (workspace: string): string => `control.${checkId("workspace", workspace)}.redeem`,
  redeemOfAll: "control.*.redeem",
  renew: (workspace: string): string => `control.${checkId("workspace", workspace)}.renew`,
  renewOfAll: "control.*.renew",
  /** A new list of what is revoked, for every machine of the workspace. */
  trust: (workspace: string): string => `agent.${checkId("workspace", workspace)}.all.trust`,
} as const;

/** Inboxes, by who may listen there; a service answers only into its caller's own. */
export const inboxPrefix = {
  agent: ({ workspace, machine }: MachineRef): string => `_INBOX_agent.${workspace}.${machine}`,
  join: (tokenKey: string): string => `_INBOX_join.${tokenKey}`,
  control: (publicKey: string): string => `_INBOX_control.${publicKey}`,
} as const;

/** The workspace and machine of an `agentev` subject, or of a `control` one without machine. */
export const parseSubject = (subject: string): { workspace: string; machine: string } | undefined => {
  const [, workspace, machine] = subject.split(".");
  return workspace === undefined || machine === undefined ? undefined : { workspace, machine };
};
