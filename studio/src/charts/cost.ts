// The expected cost (or its risk) around the decision.

import * as Plot from "@observablehq/plot";
import type { Curve } from "../api";
import { number } from "../format";
import { frame } from "./frame";
import { SYMBOLS, colourOf, type Mark } from "./outcome";

export interface CostData {
  curve: Curve;
  before: Curve | null; // with the policy's own numbers
  versus: Curve | null;
  marks: (Mark & { cost: number })[];
  domain: [number, number];
  label: string;
  axis: string;
}

interface Point {
  value: number;
  cost: number | null;
}

function points(curve: Curve, [low, high]: [number, number]): Point[] {
  return curve.values
    .map((value, i) => ({ value, cost: curve.costs[i] ?? null }))
    .filter((p) => p.value >= low && p.value <= high);
}

// Where the curve breaks a limit.
function forbidden(own: Point[]): [number, number][] {
  const found: [number, number][] = [];
  own.forEach((point, i) => {
    const before = own[i - 1];
    if (point.cost !== null || before === undefined) return;
    const last = found.at(-1);
    if (last !== undefined && last[1] === before.value) last[1] = point.value;
    else found.push([before.value, point.value]);
  });
  const first = own.findIndex((point) => point.cost !== null);
  const head = own[0];
  const edge = own[first];
  if (first > 0 && head !== undefined && edge !== undefined) {
    return [[head.value, edge.value], ...found.filter(([low]) => low >= edge.value)];
  }
  return found;
}

// From a little below the least cost to a few times as far as the curve's shoulders.
function range(curves: Point[][], marks: { cost: number }[]): [number, number] {
  const costs = curves.flat().flatMap((p) => (p.cost === null ? [] : [p.cost]));
  const all = [...costs, ...marks.map((mark) => mark.cost)].filter(Number.isFinite);
  if (all.length === 0) return [0, 1];
  const low = Math.min(...all);
  const high = Math.max(...all);
  const room = 0.12 * (high - low) || Math.abs(high) || 1;
  return [low >= 0 ? Math.max(0, low - room) : low - room, high + 0.05 * (high - low)];
}

export function drawCost(data: CostData, width: number) {
  const own = points(data.curve, data.domain);
  const before = data.before === null ? [] : points(data.before, data.domain);
  const versus = data.versus === null ? [] : points(data.versus, data.domain);
  const line = (rows: Point[], stroke: string, more: object) =>
    Plot.lineY(rows, { x: "value", y: "cost", stroke, curve: "monotone-x", ...more });
  return Plot.plot({
    ...frame(width, 220),
    marginTop: 26,
    x: { domain: data.domain },
    y: { domain: range([own, before, versus], data.marks), label: null, grid: false },
    marks: [
      ...forbidden(own).map(([low, high]) =>
        Plot.rectX([0], { x1: low, x2: high, fill: "var(--line)", fillOpacity: 0.6 }),
      ),
      ...forbidden(own).slice(-1).map(([low, high]) =>
        Plot.text(["not allowed"], { x: (low + high) / 2, frameAnchor: "middle", fill: "var(--quiet)" } as never),
      ),
      Plot.gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 4 }),
      Plot.axisY({ ticks: 4, tickFormat: number, tickSize: 0, label: null }),
      Plot.axisX({ ticks: Math.max(3, Math.round(width / 90)), tickFormat: number, tickSize: 3, label: data.axis, labelArrow: "none" }),
      Plot.text([data.label], { frameAnchor: "top-left", dy: -20, dx: -44, fill: "var(--quiet)", textAnchor: "start" } as never),
      line(before, "var(--quiet)", { strokeDasharray: "3 3", strokeWidth: 1.5 }),
      line(versus, "var(--vermilion)", { strokeDasharray: "6 3", strokeWidth: 1.75 }),
      line(own, "var(--blue)", { strokeWidth: 2.5 }),
      ...data.marks.map((mark) => Plot.ruleX([mark.value], { stroke: colourOf(mark.kind), strokeWidth: 1, strokeOpacity: 0.5 })),
      ...data.marks.map((mark) =>
        Plot.dot([mark], {
          x: "value", y: "cost", symbol: SYMBOLS[mark.kind], r: 6, fill: colourOf(mark.kind),
          stroke: "var(--card)", strokeWidth: 1.5,
        }),
      ),
      Plot.tip(own, Plot.pointerX({
        x: "value", y: "cost", fill: "var(--card)", stroke: "var(--line-strong)",
        title: (p: Point) => `${number(p.value)} costs ${number(p.cost)}`,
      })),
    ],
  });
}
