import { inboxPrefix, subjects } from "../../proto/subjects.js";
import { TRUST_BUCKET } from "../../proto/identity.js";

/** What each kind of bus user may do, as NATS writes it. An empty allow list would mean everything. */
export interface Permissions {
  readonly pub: { readonly allow: readonly string[] };
  readonly sub: { readonly allow: readonly string[] };
  readonly resp?: { readonly max: number; readonly ttl: number };
}

const WORKSPACE = "{{tag(ws)}}";
const NAME = "{{name()}}";
/** Longer than the longest run, whose answer is a reply. */
const REPLY_NS = 330 * 1_000_000_000;

const agentInbox = `_INBOX_agent.${WORKSPACE}.${NAME}.>`;
const renew = `control.${WORKSPACE}.renew`;

/** Templates of the scoped signing keys: the server fills in the user's own tag and name. */
export const TEMPLATES = {
  agent: {
    sub: {
      allow: [
        `agent.${WORKSPACE}.${NAME}.>`,
        `agent.${WORKSPACE}.all.>`,
        agentInbox,
        `agentev.${WORKSPACE}.${NAME}.claim`,
      ],
    },
    pub: {
      allow: [
        `agentev.${WORKSPACE}.${NAME}.>`,
        renew,
        `$JS.API.DIRECT.GET.KV_${TRUST_BUCKET}.$KV.${TRUST_BUCKET}.${WORKSPACE}`,
      ],
    },
    resp: { max: 1, ttl: REPLY_NS },
  },
  renew: { sub: { allow: [agentInbox] }, pub: { allow: [renew] } },
  join: {
    sub: { allow: [`_INBOX_join.${NAME}.>`] },
    pub: { allow: [`control.${WORKSPACE}.redeem`] },
  },
} as const satisfies Record<string, Permissions>;

/** Those who command machines of one workspace. */
export const controlPermissions = (workspace: string, publicKey: string): Permissions => ({
  pub: {
    allow: [
      `agent.${workspace}.*.rpc`,
      `agent.${workspace}.*.s.*`,
      subjects.scatter(workspace),
      subjects.seen(workspace),
    ],
  },
  sub: { allow: [`${inboxPrefix.control(publicKey)}.>`, `agentev.${workspace}.>`] },
});

export const EVERYTHING: Permissions = { pub: { allow: [">"] }, sub: { allow: [">"] } };
