export interface Row {
  readonly what: string;
  readonly figure: string;
  /** What it should be, and whether it is; absent for a figure that only stands beside. */
  readonly goal?: { readonly text: string; readonly met: boolean };
}

export const ratioRow = (what: string, ratio: number, goal: { atMost?: number; atLeast?: number }): Row => {
  const text = goal.atMost === undefined ? `≥ ${goal.atLeast}×` : `≤ ${goal.atMost}×`;
  const met = goal.atMost === undefined ? ratio >= (goal.atLeast ?? 0) : ratio <= goal.atMost;
  return { what, figure: `${ratio.toFixed(2)}×`, goal: { text, met } };
};

/** A Markdown table, as it stands in docs/benchmarks.md. */
export const markdown = (rows: readonly Row[]): string =>
  [
    "| what | measured | goal | met |",
    "|---|---|---|---|",
    ...rows.map(
      ({ what, figure, goal }) =>
        `| ${what} | ${figure} | ${goal?.text ?? "–"} | ${goal === undefined ? "–" : goal.met ? "yes" : "NO"} |`,
    ),
  ].join("\n");
