import { Presence, SeenQuery, SeenReply } from "../../proto/gen/machine.js";
import { formatMachineRef, parseSubject, subjects } from "../../proto/subjects.js";
import { openPlaneLink } from "../wire/plane-link.js";
import { createDirectory, type Directory } from "./directory.js";

/** The control plane: hears which machines are there and answers for it. */
export interface Plane {
  readonly directory: Directory;
  close(): Promise<void>;
}

export const startPlane = async (options: {
  servers: readonly string[];
  onProblem: (error: unknown) => void;
}): Promise<Plane> => {
  const link = await openPlaneLink(options);
  const directory = createDirectory(() => performance.now());
  link.hear(subjects.presenceOfAll, (subject, data) => {
    const ref = parseSubject(subject);
    if (ref !== undefined) directory.hear(formatMachineRef(ref), Presence.decode(data));
  });
  link.answer(subjects.seenOfAll, (subject, data) => {
    const workspace = subject.split(".")[1] ?? "";
    const { machine } = SeenQuery.decode(data);
    const { ageMs, goodbye } = directory.seen(formatMachineRef({ workspace, machine }));
    return SeenReply.encode({
      ageMs: ageMs === undefined ? undefined : BigInt(Math.round(ageMs)),
      goodbye,
    }).finish();
  });
  return { directory, close: () => link.close() };
};
