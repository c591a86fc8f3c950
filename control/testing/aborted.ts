/** Resolves when `signal` is aborted; stops listening once `done` is. */
export const aborted = (signal: AbortSignal, done: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true, signal: done });
  });
