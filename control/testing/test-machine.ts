import { randomUUID } from "node:crypto";
import type { SeenReply } from "../../proto/gen/machine.js";
import { LIMITS } from "../../proto/limits.js";
import type { MachineRef } from "../../proto/subjects.js";
import type { Clock } from "../clock.js";
import type { RequestOp, ResponseResult } from "../envelope.js";
import type { Outcome } from "../rpc.js";
import { runCommand } from "./command-op.js";
import { describe } from "./describe.js";
import { actOnFiles } from "./file-ops.js";
import { createRequests, type RecordedRequest } from "./requests.js";
import { createResponder } from "./responder.js";
import { createRules } from "./rules.js";
import { type CommandMatch, readScript, type RunScript, type Script, type ScriptedEnd } from "./script.js";
import { changeSwitches, INITIAL_SWITCHES, type Switches } from "./switches.js";
import { createTestFiles, type TestFiles } from "./test-files.js";
import { createVirtualFiles } from "./virtual-files.js";

/** What a test holds of a machine that exists in memory only. */
export interface TestMachine {
  readonly workspace: string;
  readonly name: string;
  readonly files: TestFiles;
  /** What has reached the machine, in order of arrival. */
  readonly requests: readonly RecordedRequest[];
  /** Plays every command, or those that match. Of several that would, the one added last does. */
  onRun(script: RunScript): void;
  onRun(match: CommandMatch, script: RunScript | ScriptedEnd): void;
  /** Changes the switches that are named, and leaves the others. */
  set(switches: Partial<Switches>): void;
  /**
   * The next request is carried out and its answer lost. The caller is told at once what it would
   * otherwise learn after its timeout.
   */
  dropNextReply(): void;
}

/** The side of a machine that the bus sees. */
export interface Station {
  readonly machine: TestMachine;
  deliver(payload: Uint8Array): Promise<Outcome>;
  seen(): SeenReply;
}

export interface StationOptions {
  readonly ref: MachineRef;
  readonly root: string;
  readonly clock: Clock;
  readonly maxPayload: number;
}

const SILENCE: Outcome = { kind: "timeout", linkIsUp: true };

export const createStation = ({ ref, root, clock, maxPayload }: StationOptions): Station => {
  const startedMs = clock.now();
  const maxReplyBytes = maxPayload - LIMITS.envelopeBytes;
  const requests = createRequests();
  const files = createVirtualFiles({ root, now: clock.now });
  const testFiles = createTestFiles(files);
  for (const directory of [root, "/tmp"]) testFiles.makeDir(directory);
  let scripts: readonly Script[] = [];
  let switches = INITIAL_SWITCHES;
  let lastHeardAt = clock.monotonic();
  let isNextReplyLost = false;

  const act = async (op: RequestOp, signal: AbortSignal): Promise<ResponseResult | undefined> => {
    if (op.$case === "ping") return { $case: "ping", value: {} };
    if (op.$case === "describe") {
      const { consentRequired } = switches;
      return { $case: "describe", value: describe({ ref, root, startedMs, consentRequired, maxReplyBytes }) };
    }
    if (op.$case === "procRun") {
      const value = await runCommand(op.value, { scripts, files, clock, signal, maxReplyBytes });
      return { $case: "procRun", value };
    }
    return actOnFiles(op, files, maxReplyBytes);
  };

  const respond = createResponder({
    instanceId: randomUUID(),
    now: clock.now,
    maxPayload,
    rules: createRules(clock.now, () => switches),
    requests,
    act,
  });

  const oneWay = async (): Promise<void> => {
    if (switches.latencyMs > 0) await clock.sleep(switches.latencyMs / 2);
  };

  return {
    machine: {
      workspace: ref.workspace,
      name: ref.machine,
      files: testFiles,
      requests: requests.all,
      onRun: (...given: [RunScript] | [CommandMatch, RunScript | ScriptedEnd]) =>
        void (scripts = [readScript(given), ...scripts]),
      set(change) {
        const changed = changeSwitches(switches, change);
        if (switches.presence === "online") lastHeardAt = clock.monotonic();
        switches = changed;
      },
      dropNextReply: () => void (isNextReplyLost = true),
    },
    async deliver(payload) {
      if (switches.presence !== "online") return { kind: "no_responders" };
      await oneWay();
      const reply = await respond(payload);
      await oneWay();
      const isLost = isNextReplyLost || switches.presence !== "online";
      isNextReplyLost = false;
      return isLost ? SILENCE : { kind: "reply", payload: reply };
    },
    seen() {
      const sinceMs = switches.presence === "online" ? 0 : clock.monotonic() - lastHeardAt;
      return { ageMs: BigInt(Math.round(sinceMs)), goodbye: switches.presence === "offline" };
    },
  };
};
