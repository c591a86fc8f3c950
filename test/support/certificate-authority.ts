import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./temporary.js";

export interface ServerCertificate {
  readonly caFile: string;
  readonly ca: string;
  readonly certFile: string;
  readonly keyFile: string;
}

const openssl = (args: readonly string[], cwd: string): void =>
  void execFileSync("openssl", args, { cwd, stdio: ["ignore", "ignore", "ignore"] });

const EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"] as const;

/** A certificate authority of the test's own, and a certificate of it for 127.0.0.1. */
export const makeCertificate = (): ServerCertificate => {
  const directory = temporaryDirectory();
  const at = (name: string): string => join(directory, name);
  openssl(
    [
      "req",
      "-x509",
      ...EC_KEY,
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
      "-days",
      "1",
      "-subj",
      "/CN=farhand test CA",
    ],
    directory,
  );
  openssl(
    ["req", ...EC_KEY, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1"],
    directory,
  );
  writeFileSync(at("san.cnf"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
  openssl(
    [
      "x509",
      "-req",
      "-in",
      "server.csr",
      "-CA",
      "ca.pem",
      "-CAkey",
      "ca.key",
      "-CAcreateserial",
      "-days",
      "1",
      "-extfile",
      "san.cnf",
      "-out",
      "server.pem",
    ],
    directory,
  );
  return {
    caFile: at("ca.pem"),
    ca: readFileSync(at("ca.pem"), "utf8"),
    certFile: at("server.pem"),
    keyFile: at("server.key"),
  };
};
