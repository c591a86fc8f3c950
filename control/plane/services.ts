import { FarhandError } from "../../proto/farhand-error.js";
import type { AgentError } from "../../proto/gen/envelope.js";
import {
  type Enrolment,
  RedeemReply,
  RedeemRequest,
  RenewReply,
  RenewRequest,
} from "../../proto/gen/identity.js";
import { SeenQuery, SeenReply } from "../../proto/gen/machine.js";
import { formatMachineRef, inboxPrefix, subjects } from "../../proto/subjects.js";
import type { Authority } from "../authority/authority.js";
import { redeem } from "../authority/redeem.js";
import { renew } from "../authority/renew.js";
import type { PlaneLink, ServiceRequest } from "../wire/plane-link.js";
import type { Directory } from "./directory.js";

/**
 * The services of the control plane. The server does not check reply subjects, so each answers into
 * its caller's own inbox only: else a caller could make the plane publish wherever it likes.
 */

const workspaceOf = ({ subject }: ServiceRequest): string => subject.split(".")[1] ?? "";

const isWithin = (reply: string, prefix: string): boolean => reply.startsWith(`${prefix}.`);

type Outcome =
  { readonly $case: "enrolment"; value: Enrolment } | { readonly $case: "error"; value: AgentError };

/** Every outcome is an answer; what is a defect of ours is reported here as well. */
const outcomeOf = async (
  work: Promise<Enrolment>,
  onProblem: (error: unknown) => void,
): Promise<{ outcome: Outcome }> => {
  try {
    return { outcome: { $case: "enrolment", value: await work } };
  } catch (thrown) {
    if (!(thrown instanceof FarhandError)) onProblem(thrown);
    return { outcome: { $case: "error", value: FarhandError.from(thrown).toAgentError() } };
  }
};

export const serveSeen = (
  link: PlaneLink,
  { directory, inboxes }: { directory: Directory; inboxes: readonly string[] },
): void => {
  link.answer(subjects.seenOfAll, (request) => {
    if (!inboxes.some((prefix) => isWithin(request.reply, prefix))) return undefined;
    const { machine } = SeenQuery.decode(request.data);
    const seen = directory.seen(formatMachineRef({ workspace: workspaceOf(request), machine }));
    return SeenReply.encode({
      ageMs: seen.ageMs === undefined ? undefined : BigInt(Math.round(seen.ageMs)),
      goodbye: seen.goodbye,
    }).finish();
  });
};

export const serveIdentity = (
  link: PlaneLink,
  authority: Authority,
  onProblem: (error: unknown) => void,
): void => {
  link.answer(subjects.redeemOfAll, async (request) => {
    const asked = RedeemRequest.decode(request.data);
    if (!isWithin(request.reply, inboxPrefix.join(asked.token))) return undefined;
    return RedeemReply.encode(
      await outcomeOf(redeem(authority, workspaceOf(request), asked), onProblem),
    ).finish();
  });
  link.answer(subjects.renewOfAll, async (request) => {
    const asked = RenewRequest.decode(request.data);
    const workspace = workspaceOf(request);
    if (!isWithin(request.reply, inboxPrefix.agent({ workspace, machine: asked.machine }))) return undefined;
    return RenewReply.encode(await outcomeOf(renew(authority, workspace, asked), onProblem)).finish();
  });
};
