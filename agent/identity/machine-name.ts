import { FarhandError } from "../../proto/farhand-error.js";
import { idProblem } from "../../proto/subjects.js";

const MAX_CHARS = 63;

/** A host name made into a legal machine name; empty if nothing of it is left. */
export const nameFromHost = (hostname: string): string => {
  const [label = ""] = hostname.toLowerCase().split(".");
  return label
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^[^a-z0-9]+|-+$/g, "")
    .slice(0, MAX_CHARS);
};

/** The name to join under: the one given, else the token's, else the host's. */
export const chooseName = (options: {
  given: string | undefined;
  bound: string | undefined;
  hostname: string;
}): string => {
  const { given, bound, hostname } = options;
  if (given !== undefined && bound !== undefined && given !== bound) {
    throw new FarhandError("invalid", `the join token is for the machine ${bound}, not for ${given}`, {
      advice: `leave --name out, or get a token for ${given}`,
    });
  }
  const name = given ?? bound ?? nameFromHost(hostname);
  const problem = idProblem(name);
  if (problem === undefined) return name;
  const shown = JSON.stringify(name.slice(0, 2 * MAX_CHARS));
  throw new FarhandError("invalid", `the machine name ${shown} ${problem}`, {
    advice: "give the machine a name with --name",
  });
};
