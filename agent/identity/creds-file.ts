import { existsSync, readFileSync } from "node:fs";
import { FarhandError } from "../../proto/farhand-error.js";
import { checkPrivate } from "./identity.js";

/** The text of a NATS creds file; one that others may read is refused. */
export const readCredsFile = (path: string): string => {
  if (!existsSync(path)) {
    throw new FarhandError("invalid", `there is no creds file ${path}`, {
      advice: "name one that exists with --creds",
    });
  }
  checkPrivate(path, "get new ones");
  return readFileSync(path, "utf8");
};
