import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { TRUST_BUCKET } from "../../proto/identity.js";
import { subjects } from "../../proto/subjects.js";
import type { TrustLedger } from "../identity/trust.js";
import { createBackoff } from "./backoff.js";
import type { Link } from "./link.js";

export interface TrustFeed {
  /** Resolves when the bus has told which list is the latest; tries until then. */
  refresh(): Promise<void>;
  stop(): void;
}

const ASK_MS = 2_000;

/** Brings the trust list from the bus: at every (re)connect by asking, and by hearing of changes. */
export const followTrust = (options: {
  link: Link;
  workspace: string;
  ledger: TrustLedger;
  log: Logger;
}): TrustFeed => {
  const { link, workspace, ledger, log } = options;
  const stopping = new AbortController();

  const accept = (signed: Uint8Array | undefined, told: "asked" | "heard"): void => {
    const outcome = ledger.accept(signed);
    if (outcome === "new") log.info({ version: String(ledger.version) }, "took in a new trust list");
    // What is kept here is newer than what the bus has, and goes on to hold.
    if (outcome === "older") {
      log.error(
        { version: String(ledger.version), told },
        "the bus offers a trust list that is older than the last one, or none: it was refused, and the last one holds",
      );
    }
  };

  const unsubscribe = link.subscribe(subjects.trust(workspace), {}, ({ data }) => accept(data, "heard"));

  const refresh = async (): Promise<void> => {
    const backoff = createBackoff({ minMs: 250, maxMs: 2_000 });
    for (let hasFailed = false; !stopping.signal.aborted; hasFailed = true) {
      try {
        return accept(await link.lookUp(TRUST_BUCKET, workspace, ASK_MS), "asked");
      } catch (error) {
        if (!hasFailed)
          log.error({ err: error }, "could not get the trust list: no request is served until then");
      }
      await sleep(backoff.next(), undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };

  return {
    refresh,
    stop() {
      stopping.abort();
      unsubscribe();
    },
  };
};
