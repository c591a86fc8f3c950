/** Which credentials are no longer good, as the authority last told. */
export interface Trust {
  /** Was what this key was given at that time revoked? */
  isRevoked(publicKey: string, issuedMs: number): boolean;
}

export const TRUST_ALL: Trust = { isRevoked: () => false };
