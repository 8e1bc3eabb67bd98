// Data that are given to a problem: numbers, vectors and matrices, typed entry by entry.

import type { Given } from "./api";

// Names of the entries: "budget", "price[0]", "price[1]".
export function entriesOf({ name, shape }: Given): string[] {
  const places = shape.reduce<number[][]>(
    (found, size) => found.flatMap((place) => Array.from({ length: size }, (_, i) => [...place, i])),
    [[]],
  );
  return places.map((place) => (place.length === 0 ? name : `${name}[${place.join(", ")}]`));
}

// The value in its shape; what was not typed is 0.
export function valueOf(given: Given, typed: Record<string, number>): unknown {
  const flat = entriesOf(given).map((entry) => typed[entry] ?? 0);
  return nested(flat, given.shape);
}

function nested(flat: number[], [size, ...inner]: number[]): unknown {
  if (size === undefined) return flat[0];
  const part = flat.length / size;
  return Array.from({ length: size }, (_, i) => nested(flat.slice(i * part, (i + 1) * part), inner));
}
