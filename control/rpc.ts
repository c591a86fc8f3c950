/** One message to a subject, and the wait for its answer. */
export interface Exchange {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** What came of it. Nothing else can: a transport never throws, except for the caller's own abort. */
export type Outcome =
  | { readonly kind: "reply"; readonly payload: Uint8Array }
  /** The bus says that nobody listens on the subject. */
  | { readonly kind: "no_responders" }
  /** Nobody answered in time; whether our own link was alive at that moment. */
  | { readonly kind: "timeout"; readonly linkIsUp: boolean }
  /** Our link dropped after the message was handed over: it may have arrived. */
  | { readonly kind: "link_lost" }
  /** Our link is down, and the message was not sent. */
  | { readonly kind: "unavailable"; readonly because: string }
  | { readonly kind: "too_large"; readonly limit: number };

/** The seam between the client code and whatever carries it. */
export interface ControlRpc {
  exchange(exchange: Exchange): Promise<Outcome>;
}
