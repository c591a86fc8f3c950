import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { FarhandError } from "../../../proto/farhand-error.js";
import { osFault } from "../os-fault.js";
import { type Info, infoAt } from "./file-info.js";

export interface ListRequest {
  readonly path: string;
  /** Names after this one. */
  readonly cursor: string;
  readonly limit: number;
}

export type Entry = Info | { readonly path: string; readonly name: string; readonly problem: string };

const STAT_AT_ONCE = 16;

/** The first `limit` names after the cursor and whether there are more, holding no more than twice that. */
const namesAfter = async ({
  path,
  cursor,
  limit,
}: ListRequest): Promise<{ names: string[]; more: boolean }> => {
  let names: string[] = [];
  let more = false;
  const trim = (): void => {
    names.sort();
    if (names.length > limit) {
      more = true;
      names = names.slice(0, limit);
    }
  };
  try {
    const directory = await opendir(path, { bufferSize: 256 });
    for await (const { name } of directory) {
      if (name <= cursor && cursor !== "") continue;
      names.push(name);
      if (names.length >= 2 * limit) trim();
    }
  } catch (error) {
    throw osFault(error, { subject: path, detail: { path } });
  }
  trim();
  return { names, more };
};

const entryAt = async (path: string, name: string): Promise<Entry> => {
  try {
    return await infoAt(join(path, name));
  } catch (error) {
    return { path: join(path, name), name, problem: FarhandError.from(error).message };
  }
};

/** One page of a directory in order of name; an entry that cannot be looked at says so. */
export const listDirectory = async (request: ListRequest): Promise<{ entries: Entry[]; more: boolean }> => {
  const { names, more } = await namesAfter(request);
  const entries: Entry[] = [];
  for (let at = 0; at < names.length; at += STAT_AT_ONCE) {
    entries.push(
      ...(await Promise.all(names.slice(at, at + STAT_AT_ONCE).map((name) => entryAt(request.path, name)))),
    );
  }
  return { entries, more };
};
