import type { Caller } from "./call.js";

/** The calls under way that can be ended early, by caller and request id. */
export interface Running {
  enter(caller: Caller, requestId: string): AbortSignal;
  leave(caller: Caller, requestId: string): void;
  cancel(caller: Caller, requestId: string): boolean;
  /** Ends all that this key's bearer has running. */
  cancelCaller(publicKey: string): void;
  cancelAll(): void;
}

const keyOf = (caller: Caller, requestId: string): string => `${caller.publicKey}\n${requestId}`;

export const createRunning = (): Running => {
  const controllers = new Map<string, AbortController>();
  return {
    enter(caller, requestId) {
      const controller = new AbortController();
      controllers.set(keyOf(caller, requestId), controller);
      return controller.signal;
    },
    leave: (caller, requestId) => void controllers.delete(keyOf(caller, requestId)),
    cancel(caller, requestId) {
      const controller = controllers.get(keyOf(caller, requestId));
      controller?.abort();
      return controller !== undefined;
    },
    cancelCaller(publicKey) {
      for (const [key, controller] of controllers) if (key.startsWith(`${publicKey}\n`)) controller.abort();
    },
    cancelAll() {
      for (const controller of controllers.values()) controller.abort();
    },
  };
};
