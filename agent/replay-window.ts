/** Accepts each counter of a session once; one that is far behind counts as seen. */
export interface ReplayWindow {
  /** False for a counter that was seen before, or that is no counter. */
  accept(counter: number): boolean;
}

const SIZE = 4_096;

/** Requests of one caller may overtake each other a little, so the last few thousand are told apart. */
export const createReplayWindow = (size: number = SIZE): ReplayWindow => {
  const seen = new Uint8Array(size);
  let highest = -1;
  return {
    accept(counter) {
      if (!Number.isSafeInteger(counter) || counter < 0 || counter <= highest - size) return false;
      if (counter > highest) {
        // What lies between has not been seen; what the ring held there before is too old to matter.
        const from = Math.max(highest + 1, counter - size + 1);
        for (let at = from; at <= counter; at++) seen[at % size] = 0;
        highest = counter;
      }
      if (seen[counter % size] === 1) return false;
      seen[counter % size] = 1;
      return true;
    },
  };
};
