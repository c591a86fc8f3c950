import type { RedeemRequest, RenewRequest } from "./gen/identity.js";

/** What is signed in the exchanges by which a machine gets and keeps its identity. */

export const redeemText = (
  workspace: string,
  request: Pick<RedeemRequest, "machine" | "publicKey" | "timeMs" | "token" | "replace">,
): Buffer =>
  Buffer.from(
    [
      "farhand redeem 1",
      workspace,
      request.machine,
      request.publicKey,
      request.timeMs,
      request.token,
      request.replace,
    ].join("\n"),
  );

export const renewText = (
  workspace: string,
  request: Pick<RenewRequest, "machine" | "publicKey" | "timeMs">,
): Buffer =>
  Buffer.from(["farhand renew 1", workspace, request.machine, request.publicKey, request.timeMs].join("\n"));

export const trustText = (list: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from("farhand trust 1\n"), list]);

/** Bucket of the signed trust lists, one key a workspace. */
export const TRUST_BUCKET = "trust";

export const IDENTITY = {
  /** How long a machine's JWT lasts; it is renewed from half of that on. */
  agentJwtMs: 24 * 3_600_000,
  tokenMs: 30 * 60_000,
  /** How far the clocks of two sides may differ in a join or a hello. */
  clockMs: 10 * 60_000,
} as const;
