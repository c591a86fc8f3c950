/** The calls under way that can be ended early, by caller and request id. */
export interface Running {
  enter(key: string): AbortSignal;
  leave(key: string): void;
  cancel(key: string): boolean;
  cancelAll(): void;
}

export const callKey = (caller: string, requestId: string): string => `${caller}\n${requestId}`;

export const createRunning = (): Running => {
  const controllers = new Map<string, AbortController>();
  return {
    enter(key) {
      const controller = new AbortController();
      controllers.set(key, controller);
      return controller.signal;
    },
    leave: (key) => void controllers.delete(key),
    cancel(key) {
      const controller = controllers.get(key);
      controller?.abort();
      return controller !== undefined;
    },
    cancelAll() {
      for (const controller of controllers.values()) controller.abort();
    },
  };
};
