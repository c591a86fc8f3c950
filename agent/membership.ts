import type { Logger } from "pino";
import { inboxPrefix, subjects } from "../proto/subjects.js";
import type { Config } from "./config.js";
import { readCredsFile } from "./identity/creds-file.js";
import type { IdentityKeeper } from "./identity/keeper.js";
import { type Renewal, renewIdentity, startRenewal } from "./identity/renewal.js";
import { createTrust, type LiveTrust, TRUST_ALL, type TrustStore } from "./identity/trust.js";
import type { Link, LinkOptions } from "./wire/link.js";
import { askPlane } from "./wire/plane.js";
import { followTrust, type TrustFeed } from "./wire/trust-feed.js";

/** The machine's place in its workspace: how it gets on the bus, and whom it may still trust. */
export interface Membership {
  readonly trust: LiveTrust;
  readonly access: Pick<LinkOptions, "servers" | "ca" | "credential" | "prepare">;
  /** Once connected: resolves when the trust list is known; from then on both are kept up to date. */
  follow(link: Link): Promise<void>;
  /** After every reconnect: resolves when the trust list is known again. */
  refresh(): Promise<void>;
  stop(): void;
}

/** Without an identity it is left to the bus who may reach the machine. */
export const busMembership = ({ servers, creds }: Pick<Config, "servers" | "creds">): Membership => ({
  trust: TRUST_ALL,
  access: {
    servers,
    ...(creds === undefined ? {} : { credential: { kind: "creds", creds: readCredsFile(creds) } }),
  },
  follow: () => Promise.resolve(),
  refresh: () => Promise.resolve(),
  stop: () => undefined,
});

const RENEW_MS = 10_000;

export const joinedMembership = (options: {
  readonly keeper: IdentityKeeper;
  readonly store: TrustStore;
  readonly now: () => number;
  readonly log: Logger;
  /** Called once, when the authority's list says that this machine is revoked. */
  readonly onRevoked: () => void;
}): Membership => {
  const { keeper, now, log } = options;
  const { ref, key } = keeper;
  const { servers, ca, authority } = keeper.current;
  const trust = createTrust({ ref, authority, store: options.store });
  const renewSubject = subjects.renew(ref.workspace);
  let feed: TrustFeed | undefined;
  let renewal: Renewal | undefined;
  let isRevoked = false;

  const checkRevoked = (): void => {
    if (isRevoked || !trust.isMachineRevoked(ref.machine, key.publicKey)) return;
    isRevoked = true;
    options.onRevoked();
  };
  trust.onChange(checkRevoked);

  /** A machine that was off for long has only the JWT left that renews. */
  const askWithRenewalJwt = (request: Uint8Array): Promise<Uint8Array> => {
    const credential = { kind: "jwt", jwt: () => keeper.current.renewalJwt, seed: key.seed } as const;
    const name = `agent/${ref.machine}/renewal`;
    return askPlane(
      { servers, ca, credential, name, inboxPrefix: inboxPrefix.agent(ref) },
      renewSubject,
      request,
    );
  };

  return {
    trust,
    access: {
      servers,
      ca,
      credential: { kind: "jwt", jwt: () => keeper.current.jwt, seed: key.seed },
      async prepare({ wasRefused }) {
        const { expiresMs } = keeper.certificate;
        if (!wasRefused && now() < expiresMs) return;
        try {
          await renewIdentity(keeper, askWithRenewalJwt, now());
          log.info("renewed this machine's credential, which had expired or was refused");
        } catch (error) {
          log.debug({ err: error }, "could not renew this machine's credential");
        }
      },
    },
    async follow(link) {
      feed = followTrust({ link, workspace: ref.workspace, ledger: trust, log });
      checkRevoked();
      await feed.refresh();
      renewal = startRenewal({
        keeper,
        ask: (request) => link.ask(renewSubject, request, RENEW_MS),
        swap: () => link.renew(),
        isConnected: () => link.isConnected(),
        now,
        log,
      });
    },
    refresh: () => feed?.refresh() ?? Promise.resolve(),
    stop() {
      feed?.stop();
      renewal?.stop();
    },
  };
};
