import { FarhandError } from "../../proto/farhand-error.js";
import { SignedTrustList, TrustList } from "../../proto/gen/identity.js";
import { trustText } from "../../proto/identity.js";
import { isSignedBy } from "../../proto/nkey.js";
import type { MachineRef } from "../../proto/subjects.js";

/** Which credentials are no longer good, as the authority last told. */
export interface Trust {
  /** Was what this key was given at that time revoked? */
  isRevoked(publicKey: string, issuedMs: number): boolean;
}

export interface LiveTrust extends Trust {
  /** Called after every change of what is revoked; ends with what it returns. */
  onChange(listener: () => void): () => void;
}

export const TRUST_ALL: LiveTrust = { isRevoked: () => false, onChange: () => () => undefined };

/** Where the last list outlives the agent. */
export interface TrustStore {
  read(): Uint8Array | undefined;
  write(signed: Uint8Array): void;
}

/** The list of the authority, which only moves on. */
export interface TrustLedger extends LiveTrust {
  /** 0 while there was none. */
  readonly version: bigint;
  /** Takes a list in; `undefined` where the bus has none. Throws on one that the authority did not sign, and when there never was one. */
  accept(signed: Uint8Array | undefined): "new" | "known" | "older";
  isMachineRevoked(machine: string, publicKey: string): boolean;
}

const EMPTY: TrustList = { workspace: "", version: 0n, revoked: {}, machines: {} };

/** Reads a list, or throws unless the authority signed it for this workspace. */
export const readTrustList = (
  signed: Uint8Array,
  pinned: { authority: string; workspace: string },
): TrustList => {
  const forged = (what: string, cause?: unknown): FarhandError =>
    new FarhandError("unauthenticated", `the trust list ${what}`, { cause });
  let list: TrustList;
  let isAuthentic: boolean;
  try {
    const read = SignedTrustList.decode(signed);
    isAuthentic = isSignedBy(pinned.authority, trustText(read.list), read.signature);
    list = TrustList.decode(read.list);
  } catch (error) {
    throw forged("cannot be read", error);
  }
  if (!isAuthentic) throw forged("is not signed by the authority that this machine joined under");
  if (list.workspace !== pinned.workspace) throw forged("is one of another workspace");
  return list;
};

const stored = (store: TrustStore, pinned: { authority: string; workspace: string }): TrustList => {
  const signed = store.read();
  return signed === undefined ? EMPTY : readTrustList(signed, pinned);
};

export const createTrust = (options: {
  readonly ref: Pick<MachineRef, "workspace">;
  readonly authority: string;
  readonly store: TrustStore;
}): TrustLedger => {
  const { store } = options;
  const pinned = { authority: options.authority, workspace: options.ref.workspace };
  const listeners = new Set<() => void>();
  let list = stored(store, pinned);
  return {
    get version() {
      return list.version;
    },
    accept(signed) {
      // Every workspace with a machine has a list: to see none is to be kept from it.
      if (signed === undefined && list.version === 0n) {
        throw new FarhandError("control_unavailable", "the bus has no trust list for this workspace");
      }
      const offered = signed === undefined ? EMPTY : readTrustList(signed, pinned);
      if (offered.version === list.version) return "known";
      if (offered.version < list.version) return "older";
      if (signed !== undefined) store.write(signed);
      list = offered;
      for (const listener of listeners) listener();
      return "new";
    },
    isRevoked(publicKey, issuedMs) {
      const until = Object.hasOwn(list.revoked, publicKey) ? list.revoked[publicKey] : undefined;
      return until !== undefined && BigInt(Math.floor(issuedMs / 1000)) <= until;
    },
    isMachineRevoked: (machine, publicKey) =>
      Object.hasOwn(list.machines, machine) && list.machines[machine] === publicKey,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
};
