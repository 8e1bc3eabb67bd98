// The predicted distribution of an outcome, with what is decided in it.

import * as Plot from "@observablehq/plot";
import { number } from "../format";
import { frame } from "./frame";

export interface Mark {
  value: number;
  label: string;
  kind: "decision" | "mean" | "trial" | "versus" | "seen";
}

export interface OutcomeData {
  values: number[];
  weights: number[];
  other: { values: number[]; weights: number[] } | null; // of the policy that is compared
  marks: Mark[];
  mean: number;
  epistemic: number | null; // standard deviation
  split: number | null; // a decision in the outcome's unit: colours what it is enough for
  domain: [number, number];
  name: string;
}

const COLOURS = {
  decision: "var(--blue)",
  mean: "var(--orange)",
  trial: "var(--green)",
  versus: "var(--vermilion)",
  seen: "var(--ink)",
};
export const SYMBOLS = {
  decision: "circle",
  mean: "diamond",
  trial: "triangle",
  versus: "square",
  seen: "star",
} as const;
export const colourOf = (kind: Mark["kind"]) => COLOURS[kind];

// Bins over the whole axis; one of them ends at the decision.
function thresholds(data: OutcomeData, count: number): number[] {
  const [low, high] = data.domain;
  const step = (high - low) / count || 1;
  const start = data.split === null ? low : data.split - Math.ceil((data.split - low) / step) * step;
  return Array.from({ length: count + 2 }, (_, i) => start + i * step);
}

export function drawOutcome(data: OutcomeData, width: number) {
  const bins = thresholds(data, Math.max(10, Math.min(28, Math.round(width / 26))));
  const points = data.values.map((value, i) => ({ value, weight: data.weights[i] ?? 0 }));
  const split = data.split;
  const binned = Plot.binX<Plot.RectYOptions>(
    { y: { reduce: (weights: number[]) => weights.reduce((a, b) => a + b, 0) } as never },
    { x: { thresholds: bins, value: "value" } as never, y: "weight" },
  );
  const side = (enough: boolean) =>
    points.filter((p) => split === null || (enough ? p.value <= split : p.value > split));
  const marks: Plot.Markish[] = [
    Plot.rectY(side(true), { ...binned, fill: "var(--enough)", inset: 0.5 }),
  ];
  if (split !== null) {
    marks.push(Plot.rectY(side(false), { ...binned, fill: "var(--short)", inset: 0.5 }));
  }
  if (data.other !== null) {
    const others = data.other;
    const theirs = others.values.map((value, i) => ({ value, weight: others.weights[i] ?? 0 }));
    const stroke = { stroke: "var(--vermilion)", strokeWidth: 1.5, strokeDasharray: "4 3" };
    marks.push(
      Plot.rectY(theirs, { ...binned, fill: "none", insetLeft: 1, insetRight: 1, ...stroke }),
    );
  }
  marks.push(Plot.ruleY([0], { stroke: "var(--line-strong)" }));
  if (data.epistemic !== null && data.epistemic > 0) {
    const band = [{ low: data.mean - data.epistemic, high: data.mean + data.epistemic }];
    marks.push(
      Plot.ruleY(band, {
        x1: "low", x2: "high", y: 0, dy: 4, strokeWidth: 6, stroke: "var(--sure)",
      } as never),
    );
  }
  for (const mark of data.marks) {
    const stroke = COLOURS[mark.kind];
    const dashed = mark.kind === "decision" ? {} : { strokeDasharray: "5 3" };
    marks.push(Plot.ruleX([mark.value], { stroke, strokeWidth: 2, ...dashed }));
    marks.push(
      Plot.dot([mark], {
        x: "value", frameAnchor: "top", symbol: SYMBOLS[mark.kind], fill: stroke, r: 5,
        stroke: "var(--card)",
      }),
    );
  }
  return Plot.plot({
    ...frame(width, 190),
    marginTop: 16,
    x: { domain: data.domain, label: data.name, labelAnchor: "right", labelArrow: "none" },
    y: { axis: null },
    marks: [
      ...marks,
      Plot.axisX({ ticks: Math.max(3, Math.round(width / 90)), tickFormat: number, tickSize: 3, label: data.name, labelArrow: "none" }),
      Plot.dot(points, {
        x: "value", frameAnchor: "bottom", dy: -3, r: 2.2, fill: "var(--ink)", fillOpacity: 0.28,
      }),
    ],
  });
}
