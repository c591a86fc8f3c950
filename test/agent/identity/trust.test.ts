import { expect, test } from "vitest";
import { createTrust } from "../../../agent/identity/trust.js";
import { SignedTrustList, TrustList } from "../../../proto/gen/identity.js";
import { trustText } from "../../../proto/identity.js";
import { createSigningKey } from "../../../proto/nkey.js";

const authority = createSigningKey("account");

const signed = (fields: Partial<TrustList>, signer = authority): Uint8Array => {
  const list = TrustList.encode(TrustList.fromPartial({ workspace: "w1", ...fields })).finish();
  return SignedTrustList.encode({ list, signature: signer.sign(trustText(list)) }).finish();
};

/** A ledger, and another one that starts with what the first has kept. */
const createLedgers = () => {
  let kept: Uint8Array | undefined;
  const store = { read: () => kept, write: (list: Uint8Array): void => void (kept = list) };
  return () => createTrust({ ref: { workspace: "w1" }, authority: authority.publicKey, store });
};

test("what was issued until the time in the list is revoked, and what was issued later is good", () => {
  const trust = createLedgers()();
  expect(trust.accept(signed({ version: 1n, revoked: { UA: 100n } }))).toBe("new");
  expect(trust.isRevoked("UA", 100_999)).toBe(true);
  expect(trust.isRevoked("UA", 101_000)).toBe(false);
  expect(trust.isRevoked("UB", 0)).toBe(false);
  expect(trust.isRevoked("constructor", 0)).toBe(false);
});

test("a machine is revoked with the key that the list names, not with a later one", () => {
  const trust = createLedgers()();
  trust.accept(signed({ version: 1n, machines: { m1: "UOLD" } }));
  expect(trust.isMachineRevoked("m1", "UOLD")).toBe(true);
  expect(trust.isMachineRevoked("m1", "UNEW")).toBe(false);
  expect(trust.isMachineRevoked("m2", "UOLD")).toBe(false);
});

test("an older list, or none, never replaces a newer one, also after a restart", () => {
  const open = createLedgers();
  open().accept(signed({ version: 5n, revoked: { UA: 100n } }));
  const later = open();
  expect(later.version).toBe(5n);
  expect(later.accept(signed({ version: 4n }))).toBe("older");
  expect(later.accept(undefined)).toBe("older");
  expect(later.accept(signed({ version: 5n }))).toBe("known");
  expect(later.isRevoked("UA", 0)).toBe(true);
});

test("where there never was a list, having none is not good enough", () => {
  expect(() => createLedgers()().accept(undefined)).toThrow("no trust list");
});

test("a list by another signer, for another workspace, or changed on the way is refused", () => {
  const trust = createLedgers()();
  const good = signed({ version: 7n });
  const changed = Uint8Array.from(good, (byte, at) => (at === 8 ? byte ^ 1 : byte));
  expect(() => trust.accept(signed({ version: 9n }, createSigningKey("account")))).toThrow("not signed");
  expect(() => trust.accept(signed({ version: 9n, workspace: "w2" }))).toThrow("another workspace");
  expect(() => trust.accept(changed)).toThrow("the trust list");
  expect(() => trust.accept(Buffer.from("nonsense"))).toThrow("cannot be read");
  expect(trust.version).toBe(0n);
});

test("whoever listens is told of every new list, and of nothing else", () => {
  const trust = createLedgers()();
  let told = 0;
  const end = trust.onChange(() => told++);
  trust.accept(signed({ version: 2n }));
  trust.accept(signed({ version: 2n }));
  trust.accept(signed({ version: 1n }));
  expect(told).toBe(1);
  end();
  trust.accept(signed({ version: 3n }));
  expect(told).toBe(1);
});
