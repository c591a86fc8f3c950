import { readFileSync } from "node:fs";
import { FarhandError } from "../../proto/farhand-error.js";

const STDIN = 0;

/** The text of the join token, from where the command line says it is. */
export const readToken = (argument: string | undefined, file: string | undefined): string => {
  if (argument !== undefined && file !== undefined) {
    throw new FarhandError("invalid", "the join token was given twice", {
      advice: "give it as an argument or with --token-file, not both",
    });
  }
  if (argument !== undefined) return argument;
  if (file === undefined) {
    throw new FarhandError("invalid", "no join token was given", {
      advice: "get one with farhand token create, and give it with --token-file (- for standard input)",
    });
  }
  try {
    return readFileSync(file === "-" ? STDIN : file, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new FarhandError("invalid", `the join token cannot be read from ${file}: ${why}`, {
      advice: "name a file that holds the token",
    });
  }
};
