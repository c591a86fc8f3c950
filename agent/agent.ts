import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Claim } from "../proto/gen/machine.js";
import { AGENT_EXIT, LIMITS } from "../proto/limits.js";
import { inboxPrefix, subjects } from "../proto/subjects.js";
import { VERSION } from "../proto/version.js";
import { type Authentic, createAuthentic, TRUST_THE_BUS } from "./authentic.js";
import type { Config } from "./config.js";
import { createFiles } from "./host/files/files.js";
import { identify } from "./host/processes/identity.js";
import { keepIdentity } from "./identity/keeper.js";
import { busMembership, joinedMembership, type Membership } from "./membership.js";
import { createProcesses } from "./host/processes/processes.js";
import { act, OPS } from "./ops/table.js";
import { createRunning } from "./running.js";
import { createServe } from "./serve.js";
import { admit } from "./steps/admit.js";
import { cancellable } from "./steps/cancellable.js";
import { deadline } from "./steps/deadline.js";
import { createGate } from "./steps/drain.js";
import { fence } from "./steps/fence.js";
import { once } from "./steps/once.js";
import { role } from "./steps/role.js";
import { openEpochs } from "./store/epochs.js";
import { openJournal } from "./store/journal.js";
import { openState } from "./store/state.js";
import { openTrustStore } from "./store/trust-store.js";
import { type ClaimHold, takeIdentity } from "./wire/claim.js";
import { type Link, openLink, type WireMessage } from "./wire/link.js";
import { announce } from "./wire/presence.js";

export interface Agent {
  readonly instanceId: string;
  /** Resolves with the exit code, once the agent has stopped by itself or by `stop`. */
  readonly stopped: Promise<number>;
  /** Refuses new work, finishes what runs within the grace time, says goodbye. */
  stop(): Promise<void>;
}

export interface AgentOptions {
  readonly config: Config;
  readonly log: Logger;
  /** The machine's clock, in Unix milliseconds. */
  readonly now?: () => number;
}

/** The one place where the agent's parts are put together. */
export const startAgent = async ({ config, log, now = Date.now }: AgentOptions): Promise<Agent> => {
  const ref = { workspace: config.workspace, machine: config.machine };
  const instanceId = randomUUID();
  const startedMs = now();
  const state = openState(config.stateDir, identify(process.pid));
  const journal = openJournal({ stateDir: config.stateDir, now });
  const running = createRunning();
  const gate = createGate();
  const { recall, record } = once(journal);
  const files = createFiles({ root: config.root });
  const processes = createProcesses({ root: config.root, stateDir: config.stateDir, instanceId });
  const leftovers = await processes.endLeftovers();
  if (leftovers > 0) log.warn({ processes: leftovers }, "ended commands that an earlier agent left behind");

  const keeper = config.identity === undefined ? undefined : keepIdentity(config.stateDir, config.identity);
  const membership: Membership =
    keeper === undefined
      ? busMembership(config)
      : joinedMembership({ keeper, store: openTrustStore(state.db), now, log, onRevoked: () => onRevoked() });

  const authentic: Authentic =
    keeper === undefined
      ? TRUST_THE_BUS
      : createAuthentic({
          workspace: config.workspace,
          authority: keeper.current.authority,
          key: keeper.key,
          jwt: () => keeper.current.jwt,
          trust: membership.trust,
          now,
        });

  membership.trust.onChange(() => {
    for (const publicKey of authentic.dropRevoked()) running.cancelCaller(publicKey);
  });

  const serve = createServe({
    agent: { instanceId, version: VERSION },
    steps: [
      role,
      recall,
      deadline(now),
      gate.step,
      fence(openEpochs(state.db)),
      admit(LIMITS.calls),
      cancellable(running),
      record,
    ],
    act: act({
      files,
      processes,
      about: { ...ref, startedMs },
      cancel: (caller, requestId) => running.cancel(caller, requestId),
    }),
    opRow: (name) => OPS[name],
    now,
    onDefect: (error, requestId) =>
      log.error({ err: error, requestId }, "a request failed because of a defect"),
  });

  let isServing = true;
  /** Pending while it is not yet known who took over, or who was revoked, during an absence. */
  let settled: Promise<void> = Promise.resolve();
  let hold: ClaimHold | undefined;
  let presence: ReturnType<typeof announce> | undefined;
  const { promise: stopped, resolve: setStopped } = deferred<number>();

  log.info({ servers: config.servers }, "connecting");
  const link: Link = await openLink({
    ...membership.access,
    name: `agent/${config.machine}`,
    inboxPrefix: inboxPrefix.agent(ref),
    log,
    onDisconnect: () => undefined,
    onReconnect() {
      const claimed = hold
        ?.renew()
        .catch((error: unknown) => log.warn({ err: error }, "could not renew the claim"));
      settled = Promise.all([claimed, membership.refresh()]).then(() => undefined);
      void settled.then(() => isServing && presence?.hello());
    },
  });

  const answer =
    (scatter: boolean) =>
    async ({ data, subject, reply, proof, respond }: WireMessage): Promise<void> => {
      if (reply === "") return;
      await settled;
      // Another instance has the identity now, and answers.
      if (!isServing) return;
      const { caller, seal } = authentic.open({ subject, reply, payload: data }, proof);
      const response = await serve({
        data,
        maxPayload: link.maxPayload - LIMITS.proofBytes,
        scatter,
        caller,
      });
      respond(response, seal(response));
    };

  const unsubscribe: (() => void)[] = [];
  const stopServing = (): void => {
    isServing = false;
    for (const end of unsubscribe) end();
    hold?.release();
  };

  const shutDown = async (exitCode: number): Promise<void> => {
    const finished = gate.close();
    await Promise.race([finished, sleep(config.drainGraceMs, undefined, { ref: false })]);
    running.cancelAll();
    await Promise.race([finished, sleep(LIMITS.runAnswerMs * 10, undefined, { ref: false })]);
    if (exitCode === AGENT_EXIT.ok) presence?.goodbye();
    stopServing();
    membership.stop();
    await processes.settled();
    await link.close();
    await journal.close();
    await state.close();
    setStopped(exitCode);
  };

  let stopping: Promise<void> | undefined;
  const stop = (exitCode: number = AGENT_EXIT.ok): Promise<void> => (stopping ??= shutDown(exitCode));

  const onSuperseded = (by: Claim): void => {
    log.fatal(
      { machine: config.machine, by: by.instanceId, host: by.hostname },
      `another agent (on ${by.hostname}) has taken the identity ${config.workspace}/${config.machine}: this one stops. ` +
        "If that machine is a clone of this one, enrol one of them under another name.",
    );
    stopServing();
    void stop(AGENT_EXIT.superseded);
  };

  const onRevoked = (): void => {
    log.fatal(
      ref,
      `this machine, ${config.workspace}/${config.machine}, was revoked: it stops, and ends what runs. ` +
        "To join again, get a token (farhand token create) and run farhand-agent join --force <token>.",
    );
    // Before the bus cuts the connection.
    presence?.goodbye();
    stopServing();
    running.cancelAll();
    void stop(AGENT_EXIT.revoked);
    keeper?.revoked(now());
  };

  await membership.follow(link);
  // Revoked while it was away.
  if (!isServing) return { instanceId, stopped, stop: () => stop() };
  hold = await takeIdentity({
    link,
    subject: subjects.claim(ref),
    instanceId,
    hostname: hostname(),
    generation: () => state.generation,
    outbid: (generation) => state.outbid(generation),
    onSuperseded,
  });
  unsubscribe.push(link.subscribe(subjects.rpc(ref), { queue: "agent" }, answer(false)));
  unsubscribe.push(
    link.subscribe(subjects.scatter(config.workspace), { queue: config.machine }, answer(true)),
  );
  await link.flush();
  presence = announce({ link, subject: subjects.presence(ref), instanceId, now });
  presence.hello();
  log.info({ ...ref, server: link.server, instanceId, root: config.root, pid: process.pid }, "serving");
  return { instanceId, stopped, stop: () => stop() };
};

const deferred = <T>(): { promise: Promise<T>; resolve: (value: T) => void } => {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
};
