/** Which part of an output is kept when there is more than may be kept. */
export type Keep = "head" | "tail" | "head_tail";

export interface Captured {
  readonly data: Buffer;
  readonly totalBytes: number;
  readonly truncated: boolean;
  /** How many bytes of `data` are from the beginning of the output. */
  readonly headBytes: number;
}

export interface Capture {
  push(chunk: Uint8Array): void;
  totalBytes(): number;
  /** What is kept, cut further to `maxBytes` by the same rule. */
  take(maxBytes?: number): Captured;
}

const HEAD_SHARE = 0.3;

/** How many bytes of the beginning and of the end may be kept. */
export const shares = (keep: Keep, maxBytes: number): { head: number; tail: number } => {
  if (keep === "head") return { head: maxBytes, tail: 0 };
  if (keep === "tail") return { head: 0, tail: maxBytes };
  const head = Math.floor(maxBytes * HEAD_SHARE);
  return { head, tail: maxBytes - head };
};

const FIRST_SIZE = 4096;

/** A buffer that grows to at most `max`, so that small outputs cost little. */
const growing = (max: number) => {
  let buffer = Buffer.alloc(0);
  return {
    get buffer() {
      return buffer;
    },
    room(size: number): Buffer {
      if (size > buffer.length) {
        const larger = Buffer.allocUnsafe(Math.min(max, Math.max(size, 2 * buffer.length, FIRST_SIZE)));
        buffer.copy(larger);
        buffer = larger;
      }
      return buffer;
    },
  };
};

/** Copies what it keeps: chunks from a pipe are slices of much larger buffers. */
export const createCapture = (keep: Keep, maxBytes: number): Capture => {
  const limit = shares(keep, maxBytes);
  const head = growing(limit.head);
  const tail = growing(limit.tail);
  let headBytes = 0;
  let tailBytes = 0;
  /** Where the next byte of the tail goes; the ring wraps only once it has its full size. */
  let at = 0;
  let totalBytes = 0;

  const pushTail = (chunk: Uint8Array): void => {
    if (limit.tail === 0 || chunk.length === 0) return;
    const last = chunk.length > limit.tail ? chunk.subarray(chunk.length - limit.tail) : chunk;
    const ring = tail.room(Math.min(limit.tail, tailBytes + last.length));
    const first = Math.min(last.length, limit.tail - at);
    ring.set(last.subarray(0, first), at);
    ring.set(last.subarray(first), 0);
    at = (at + last.length) % limit.tail;
    tailBytes = Math.min(limit.tail, tailBytes + last.length);
  };

  const readTail = (): Buffer => {
    if (tailBytes < limit.tail) return tail.buffer.subarray(0, tailBytes);
    return Buffer.concat([tail.buffer.subarray(at), tail.buffer.subarray(0, at)]);
  };

  return {
    totalBytes: () => totalBytes,
    push(chunk) {
      totalBytes += chunk.length;
      const forHead = Math.min(chunk.length, limit.head - headBytes);
      if (forHead > 0) {
        head.room(headBytes + forHead).set(chunk.subarray(0, forHead), headBytes);
        headBytes += forHead;
      }
      pushTail(chunk.subarray(forHead));
    },
    take(max = maxBytes) {
      const first = head.buffer.subarray(0, headBytes);
      const last = readTail();
      if (first.length + last.length <= max) {
        const data = Buffer.concat([first, last]);
        const truncated = totalBytes > data.length;
        return { data, totalBytes, truncated, headBytes: truncated ? first.length : data.length };
      }
      const cut = shares(keep, max);
      // The kept parts are contiguous when nothing was left out between them.
      const whole = first.length + last.length === totalBytes ? Buffer.concat([first, last]) : undefined;
      const start = (whole ?? first).subarray(0, cut.head);
      const end = whole ?? last;
      const data = Buffer.concat([start, end.subarray(end.length - Math.min(cut.tail, end.length))]);
      return { data, totalBytes, truncated: true, headBytes: start.length };
    },
  };
};
