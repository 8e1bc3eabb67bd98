// The last weeks of a series, and what is predicted for the day.

import * as Plot from "@observablehq/plot";
import { number } from "../format";
import { frame } from "./frame";

export interface PastData {
  days: string[];
  values: (number | null)[];
  day: string;
  quantiles: [number, number, number, number, number];
  decision: number | null; // where it has the outcome's unit
  name: string;
}

export function drawPast(data: PastData, width: number) {
  const seen = data.days
    .map((day, i) => ({ day: new Date(`${day}T00:00:00`), value: data.values[i] ?? null }))
    .filter((p) => p.value !== null);
  const day = new Date(`${data.day}T00:00:00`);
  const [low, lower, middle, upper, high] = data.quantiles;
  const at = [{ day, low, lower, middle, upper, high }];
  const top = Math.max(high, ...seen.map((p) => p.value as number));
  const bottom = Math.min(0, low, ...seen.map((p) => p.value as number));
  return Plot.plot({
    ...frame(width, 170),
    marginTop: 12,
    marginRight: 20,
    x: { type: "time", label: null, domain: [seen[0]?.day ?? day, new Date(day.getTime() + 1.5 * 864e5)] },
    y: { domain: [bottom, 1.06 * top || 1], label: null },
    marks: [
      Plot.gridY({ stroke: "var(--line)", strokeOpacity: 1, ticks: 3 }),
      Plot.axisY({ ticks: 3, tickFormat: number, tickSize: 0, label: null }),
      Plot.axisX({ ticks: Math.max(2, Math.round(width / 130)), tickSize: 3, label: null }),
      Plot.lineY(seen, { x: "day", y: "value", stroke: "var(--quiet)", strokeWidth: 1.25 }),
      Plot.dot(seen, { x: "day", y: "value", r: 2.2, fill: "var(--ink)", fillOpacity: 0.65 }),
      Plot.ruleX(at, { x: "day", y1: "low", y2: "high", stroke: "var(--enough)", strokeWidth: 4, strokeLinecap: "round" } as never),
      Plot.ruleX(at, { x: "day", y1: "lower", y2: "upper", stroke: "var(--sure)", strokeWidth: 9 }),
      ...(data.decision === null
        ? []
        : [Plot.dot([data.decision], { x: [day] as never, y: (v: number) => v, symbol: "circle", r: 5.5, fill: "var(--blue)", stroke: "var(--card)", strokeWidth: 1.5 } as never)]),
    ],
  });
}
