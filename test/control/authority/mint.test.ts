import { describe, expect, test } from "vitest";
import { createKeys } from "../../../control/authority/keys.js";
import { mintAgent, mintControl, mintJoin, mintRenewal } from "../../../control/authority/mint.js";
import { readCertificate, verifyCertificate } from "../../../proto/certificate.js";
import { createSigningKey } from "../../../proto/nkey.js";

const keys = createKeys();
const { publicKey } = createSigningKey("user");
const nowMs = 1_900_000_000_000;

const claimsOf = (jwt: string): { nats: Record<string, unknown> } =>
  JSON.parse(Buffer.from(jwt.split(".")[1] ?? "", "base64url").toString());

describe("a minted user", () => {
  test("of control is a certificate that whoever pinned the authority can verify", () => {
    const jwt = mintControl(keys, {
      workspace: "w1",
      name: "ci",
      role: "reader",
      publicKey,
      nowMs,
      expiresMs: nowMs + 60_000,
    });
    const authority = keys.controlSigner.publicKey;
    expect(verifyCertificate(jwt, { authority, nowMs })).toMatchObject({
      name: "ci",
      publicKey,
      workspace: "w1",
      role: "reader",
      issuedMs: nowMs,
      expiresMs: nowMs + 60_000,
    });
    expect(() => verifyCertificate(jwt, { authority, nowMs: nowMs + 60_000 })).toThrow("expired at");
    const other = createKeys().controlSigner.publicKey;
    expect(() => verifyCertificate(jwt, { authority: other, nowMs })).toThrow("another authority");
  });

  test("of a machine, a renewal or a token carries no permissions of its own: its signer's template rules", () => {
    const user = { workspace: "w1", machine: "m1", publicKey, nowMs };
    const scoped = [
      mintAgent(keys, { ...user, expiresMs: nowMs + 1_000 }),
      mintRenewal(keys, user),
      mintJoin(keys, { workspace: "w1", publicKey, nowMs, expiresMs: nowMs + 1_000 }),
    ];
    for (const jwt of scoped) {
      const { nats } = claimsOf(jwt);
      expect(Object.keys(nats).toSorted()).toEqual(["issuer_account", "tags", "type", "version"]);
      expect(nats["tags"]).toContain("ws:w1");
    }
    expect(readCertificate(scoped[1] ?? "").expiresMs).toBe(Infinity);
  });

  test.each(["", "a.b", "*", ">", "Upper", "all", "a b"])("is refused for the name %j", (name) => {
    const user = { publicKey, nowMs, expiresMs: nowMs + 1_000 };
    expect(() => mintAgent(keys, { ...user, workspace: "w1", machine: name })).toThrow("machine name");
    expect(() => mintAgent(keys, { ...user, workspace: name, machine: "m1" })).toThrow("workspace name");
    expect(() => mintJoin(keys, { ...user, workspace: name })).toThrow("workspace name");
    expect(() => mintControl(keys, { ...user, workspace: name, name: "n", role: "reader" })).toThrow(
      "workspace name",
    );
  });

  // Counted in time on the processor: the loop is synchronous, so on a machine that does nothing else
  // that is the time it takes, and other tests at the same time do not stretch it.
  test("takes little enough time that 10,000 are minted in 5 s", () => {
    const before = process.cpuUsage();
    for (let at = 0; at < 10_000; at++)
      mintAgent(keys, { workspace: "w1", machine: `m${at}`, publicKey, nowMs, expiresMs: nowMs + 1_000 });
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(5_000);
  });
});
