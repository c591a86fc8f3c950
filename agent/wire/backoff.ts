/**
 * Delays between attempts to reach the bus: full jitter between a floor and a ceiling that doubles
 * up to `maxMs`, so that a fleet does not come back all at once.
 */
export const createBackoff = ({
  minMs,
  maxMs,
  random = Math.random,
}: {
  minMs: number;
  maxMs: number;
  random?: () => number;
}) => {
  let attempt = 0;
  return {
    next(): number {
      const ceiling = Math.min(maxMs, minMs * 2 ** attempt++);
      return Math.round(minMs / 2 + random() * (ceiling - minMs / 2));
    },
    reset(): void {
      attempt = 0;
    },
  };
};
