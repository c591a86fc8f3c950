import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { firstAccountJwt, operatorJwt, systemJwt } from "./claims.js";
import type { AuthorityKeys } from "./keys.js";
import { replacePrivateFile } from "./private-file.js";

const accountPath = (keys: AuthorityKeys, home: string): string =>
  join(home, "nats", `${keys.account.publicKey}.jwt`);

/** Keeps the claims that were pushed last, so that the next server starts with what is revoked. */
export const keepAccountJwt = (keys: AuthorityKeys, home: string, jwt: string): void =>
  replacePrivateFile(accountPath(keys, home), `${jwt}\n`);

const currentAccountJwt = async (keys: AuthorityKeys, home: string): Promise<string> => {
  const path = accountPath(keys, home);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : await firstAccountJwt(keys);
};

/** The lines of a nats-server configuration that put it under this authority. */
export const operatorConfig = async (
  keys: AuthorityKeys,
  home: string,
  resolverDir: string = join(home, "nats", "accounts"),
): Promise<string> => `
operator: ${await operatorJwt(keys)}
system_account: ${keys.system.publicKey}
resolver: {
  type: full
  dir: ${JSON.stringify(resolverDir)}
  allow_delete: true
  interval: "2m"
  timeout: "1.9s"
}
resolver_preload: {
  ${keys.system.publicKey}: ${await systemJwt(keys)}
  ${keys.account.publicKey}: ${await currentAccountJwt(keys, home)}
}
`;
