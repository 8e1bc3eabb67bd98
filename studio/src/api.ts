// What the service is asked, and what it answers.

export type Cell = string | number | boolean | null;
export type Row = Record<string, Cell>;
export type Decision = Record<string, number>;

export interface Unavailable {
  unavailable: string;
}

export interface Field {
  name: string;
  kind: "number" | "boolean" | "category" | "date" | "text";
  value: Cell;
  choices?: string[];
}

export interface Given {
  name: string;
  shape: number[];
}

export interface Form {
  policy: string;
  version: string;
  kind: string;
  decisions: string[];
  outcomes: string[];
  columns: Field[];
  given: Given[];
  series: { columns: string[]; names: string[]; count: number } | null;
  days: {
    column: string;
    first: string;
    last: string;
    next: string;
    horizon: number;
    learned: string;
  } | null;
  scenarios: boolean;
  missing: string;
}

export interface DayRow {
  series: string;
  row: Row;
  known: boolean;
  outcome: Record<string, number | null>;
}

export interface Day {
  day: string;
  left_out: number;
  rows: DayRow[];
}

export interface Entry {
  name: string;
  base: number;
  value: number;
  low: number;
  high: number;
}

export interface Parameter {
  field: string;
  kind: "parameter" | "given";
  entries: Entry[];
}

export interface Risk {
  measure: "mean" | "cvar" | "mean_cvar" | "worst_case";
  level?: number;
  weight?: number;
  unavailable?: string | null;
}

export interface Costing {
  decision: Decision;
  allowed: boolean;
  expected_cost: number | null;
  objective: number | null;
}

export interface Curve {
  name: string;
  values: number[];
  costs: (number | null)[];
  others: "kept" | "decided"; // the other decisions, along the curve
}

export interface Outcome {
  name: string;
  mean: number;
  quantiles: [number, number, number, number, number]; // 5, 25, 50, 75 and 95 %
}

export interface Uncertainty {
  outcome: string;
  epistemic: number;
  aleatoric: number;
  how: string;
}

export interface Scenarios {
  values: number[][]; // by outcome
  weights: number[];
}

export interface History {
  days: string[];
  outcomes: Record<string, (number | null)[]>;
}

export interface View {
  status: string;
  note: string;
  changed: boolean;
  extrapolates: boolean;
  comparable: boolean;
  parameters: Parameter[];
  risk: Risk;
  notes: string[];
  uncertainty: Uncertainty[] | Unavailable;
  outcomes: Outcome[];
  scenarios?: Scenarios | Unavailable;
  history?: History | null;
  decision: Decision | null;
  expected_cost?: number | null;
  objective?: number | null;
  costs?: (number | null)[];
  certainty_equivalent?: string;
  curve?: Curve | Unavailable;
  mean_based?: Costing | Unavailable;
  constraints?: { name: string; shadow_price: number }[] | Unavailable;
  trial?: Costing | null;
  interval?: { lower: number | null; upper: number | null; level: number } | null;
}

export interface WhatIf {
  rows: [Row];
  given?: Record<string, unknown[]>;
  parameters?: Record<string, number>;
  factors?: Record<string, number>;
  risk?: Risk;
  trial?: Record<string, number>;
  about?: string;
  scenarios?: boolean;
}

export interface Decided {
  rows: {
    status: string;
    decision: Decision | null;
    certificate: Record<string, number | null> | null;
    note: string;
  }[];
  notes: string[];
}

export interface Explained {
  explanation: { sentences: Record<string, string[]> };
}

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

// The token lives as long as the tab, and goes into no address and no log.
const TOKEN = "forewise-token";
let token: string | null = sessionStorage.getItem(TOKEN);

export function setToken(value: string | null): void {
  token = value;
  if (value === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, value);
}

async function asked<T>(path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = {};
  if (token !== null) headers["Authorization"] = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "The service does not answer: is it still running?");
  }
  const text = await answer.text();
  if (!answer.ok) throw new Refused(answer.status, errorOf(text, answer.status));
  return JSON.parse(text) as T;
}

function errorOf(text: string, status: number): string {
  try {
    const found = JSON.parse(text) as { error?: string; detail?: string };
    return found.error ?? found.detail ?? `The service answered ${status}.`;
  } catch {
    return `The service answered ${status}.`;
  }
}

const named = (policy: string) => `/policies/${encodeURIComponent(policy)}`;

export const api = {
  policies: () => asked<{ policies: { policy: string; version: string }[] }>("/policies"),
  form: (policy: string) => asked<Form>(`${named(policy)}/form`),
  rows: (policy: string, day: string, series?: string) => {
    const query = new URLSearchParams({ day, ...(series === undefined ? {} : { series }) });
    return asked<Day>(`${named(policy)}/rows?${query}`);
  },
  whatif: (policy: string, body: WhatIf) => asked<View>(`${named(policy)}/whatif`, body),
  decide: (policy: string, rows: Row[]) => asked<Decided>("/decide", { policy, rows }),
  explain: (policy: string, body: { rows: [Row]; given?: Record<string, unknown[]> }) =>
    asked<Explained>("/explain", { policy, ...body }),
};

export function has<T extends object>(value: T | Unavailable | null | undefined): value is T {
  return value !== null && value !== undefined && !("unavailable" in value);
}

export function whyNot(value: object | null | undefined): string | null {
  return value && "unavailable" in value ? String(value.unavailable) : null;
}
