// How numbers are written: few digits, the reader's own marks.

// A value that is only rounding beside the others, whose size is `beside`, is 0.
export function number(value: number | null | undefined, beside = 0): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size <= 1e-9 * beside) return "0";
  if (size !== 0 && (size >= 1e7 || size < 1e-6)) return value.toExponential(2);
  const digits =
    size < 1
      ? { maximumSignificantDigits: 3 }
      : { maximumFractionDigits: size >= 1000 ? 0 : size >= 100 ? 1 : 2 };
  const text = value.toLocaleString(undefined, digits);
  return text === "-0" ? "0" : text;
}

// The size of the largest of some numbers.
export function largest(values: Iterable<number>): number {
  return Math.max(0, ...[...values].map(Math.abs).filter(Number.isFinite));
}

export function change(value: number): string {
  const text = number(Math.abs(value));
  return text === "0" ? "±0" : `${value > 0 ? "+" : "−"}${text}`;
}

export function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

// Of some things at most a few, and how many more there are.
export function shortly(names: string[], most = 3): string {
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

export function weekday(day: string): string {
  return new Date(`${day}T12:00:00`).toLocaleDateString(undefined, {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
  });
}

export function shifted(day: string, days: number): string {
  const date = new Date(`${day}T12:00:00Z`);
  date.setUTCDate(date.getUTCDate() + days);
  return date.toISOString().slice(0, 10);
}
