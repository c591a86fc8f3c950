import { describe, expect, test } from "vitest";
import { type Captured, createCapture, type Keep } from "../../../../agent/host/processes/capture.js";

const captured = (keep: Keep, maxBytes: number, chunks: readonly Uint8Array[], take?: number): Captured => {
  const capture = createCapture(keep, maxBytes);
  for (const chunk of chunks) capture.push(chunk);
  return capture.take(take);
};

const text = (size: number): Buffer => Buffer.from(Array.from({ length: size }, (_, at) => at % 251));

/** What is to be kept, worked out from the whole output. */
const reference = (keep: Keep, maxBytes: number, output: Buffer): Captured => {
  const truncated = output.length > maxBytes;
  const totalBytes = output.length;
  if (!truncated) return { data: output, totalBytes, truncated, headBytes: totalBytes };
  const headBytes = { head: maxBytes, tail: 0, head_tail: Math.floor(maxBytes * 0.3) }[keep];
  const tail = output.subarray(output.length - (maxBytes - headBytes));
  return { data: Buffer.concat([output.subarray(0, headBytes), tail]), totalBytes, truncated, headBytes };
};

/** The generator mulberry32: the same numbers for the same seed. */
const seeded = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
};

/** In one string, which is compared many times faster than an array of bytes. */
const told = ({ data, ...counts }: Captured): string => `${data.toString("hex")} ${JSON.stringify(counts)}`;

test("output within the limit is kept whole, whichever part would have been kept", () => {
  const bytes = text(100);
  for (const keep of ["head", "tail", "head_tail"] as const) {
    expect(captured(keep, 100, [bytes])).toEqual({
      data: bytes,
      totalBytes: 100,
      truncated: false,
      headBytes: 100,
    });
  }
});

test("of a longer output the beginning, the end, or 30 and 70 percent of both are kept", () => {
  const output = text(1_000);
  const counts = { totalBytes: 1_000, truncated: true };
  expect(captured("head", 100, [output])).toEqual({
    data: output.subarray(0, 100),
    headBytes: 100,
    ...counts,
  });
  expect(captured("tail", 100, [output])).toEqual({ data: output.subarray(900), headBytes: 0, ...counts });
  expect(captured("head_tail", 100, [output])).toEqual({
    data: Buffer.concat([output.subarray(0, 30), output.subarray(930)]),
    headBytes: 30,
    ...counts,
  });
});

test("what is kept is cut further by the same rule", () => {
  const output = text(1_000);
  expect(captured("head", 100, [output], 10).data).toEqual(output.subarray(0, 10));
  expect(captured("tail", 100, [output], 10).data).toEqual(output.subarray(990));
  expect(captured("head_tail", 100, [output], 10)).toEqual({
    data: Buffer.concat([output.subarray(0, 3), output.subarray(993)]),
    totalBytes: 1_000,
    truncated: true,
    headBytes: 3,
  });
});

test("all 256 bytes are kept as they are, split anywhere", () => {
  const output = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  for (let at = 0; at <= 256; at++) {
    const chunks = [output.subarray(0, at), output.subarray(at)];
    expect(captured("head_tail", 256, chunks).data.equals(output)).toBe(true);
  }
});

test("with a limit of nothing, nothing is kept and everything is counted", () => {
  for (const keep of ["head", "tail", "head_tail"] as const) {
    expect(captured(keep, 0, [text(10)])).toEqual({
      data: Buffer.alloc(0),
      totalBytes: 10,
      truncated: true,
      headBytes: 0,
    });
  }
});

test("what was kept does not change when the buffer it came from is used again", () => {
  const capture = createCapture("head_tail", 10);
  const chunk = Buffer.from("0123456789abcdef");
  capture.push(chunk);
  chunk.fill(0);
  expect(capture.take().data.toString()).toBe("0129abcdef");
});

describe.each([1, 2, 3, 4])("random chunks from seed %i", (seed) => {
  test("are kept as a naive reference keeps them, also when cut further", () => {
    const random = seeded(seed);
    for (let round = 0; round < 300; round++) {
      const maxBytes = random(3) === 0 ? random(12_000) : random(80);
      const chunks = Array.from({ length: random(12) }, () => {
        const size = random(4) === 0 ? random(2 * maxBytes + 2) : random(20);
        return Buffer.from(Array.from({ length: size }, () => random(256)));
      });
      const output = Buffer.concat(chunks);
      const cut = random(maxBytes + 2);
      for (const keep of ["head", "tail", "head_tail"] as const) {
        const what = `seed ${seed}, round ${round}, ${keep} ${maxBytes} of ${output.length}, cut to ${cut}`;
        const kept = told(captured(keep, maxBytes, chunks));
        expect({ what, kept }).toEqual({ what, kept: told(reference(keep, maxBytes, output)) });
        const less = told(captured(keep, maxBytes, chunks, cut));
        expect({ what, less }).toEqual({
          what,
          less: told(reference(keep, Math.min(cut, maxBytes), output)),
        });
      }
    }
  });
});
