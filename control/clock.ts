import { setTimeout as delay } from "node:timers/promises";

/** Time, as the client code sees it; tests put their own in its place. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
  /** Milliseconds that only grow. */
  monotonic(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const SYSTEM_CLOCK: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      throw signal?.reason ?? error;
    }
  },
};
