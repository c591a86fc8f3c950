/** One message to a subject, and the wait for its answer. */
export interface Exchange {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Proves the sender, once it is known where the answer will go. */
  readonly prove?: ((reply: string) => Proven) | undefined;
}

/** What goes with the message, and how to tell an authentic answer from a forged one. */
export interface Proven {
  readonly proof: string;
  isAuthentic(proof: string, payload: Uint8Array): boolean;
}

/** What came of it. Nothing else can: a transport never throws, except for the caller's own abort. */
export type Outcome =
  | { readonly kind: "reply"; readonly payload: Uint8Array }
  /** The bus says that nobody listens on the subject. */
  | { readonly kind: "no_responders" }
  /** Nobody answered in time; whether our own link was alive then, and how many forged answers came. */
  | { readonly kind: "timeout"; readonly linkIsUp: boolean; readonly forged?: number }
  /** Our link dropped after the message was handed over: it may have arrived. */
  | { readonly kind: "link_lost" }
  /** Our link is down, and the message was not sent. */
  | { readonly kind: "unavailable"; readonly because: string }
  /** The bus does not accept our credentials. */
  | { readonly kind: "refused"; readonly because: string }
  | { readonly kind: "too_large"; readonly limit: number };

/** An exchange that ended without an answer and without a reason of our own. */
export type Silence = Exclude<Outcome, { kind: "reply" | "too_large" | "refused" }>;

/** The seam between the client code and whatever carries it. */
export interface ControlRpc {
  exchange(exchange: Exchange): Promise<Outcome>;
}
