/** Slow enough that a bus which was away for seconds is found again within seconds. */
const GROWTH = 1.5;

/**
 * Delays between attempts to reach the bus: full jitter between a floor and a ceiling that grows
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
      const ceiling = Math.min(maxMs, minMs * GROWTH ** attempt++);
      return Math.round(minMs / 2 + random() * (ceiling - minMs / 2));
    },
    reset(): void {
      attempt = 0;
    },
  };
};

const REFUSED_MIN_MS = 2_000;
const REFUSED_MAX_MS = 300_000;

/** The delay after the bus has refused the credentials so many times: it will hardly change its mind soon. */
export const refusedDelayMs = (refusals: number, random: number): number =>
  Math.round(Math.min(REFUSED_MAX_MS, REFUSED_MIN_MS * 2 ** (refusals - 1)) * (0.75 + random / 4));
