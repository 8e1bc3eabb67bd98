// What a person has chosen: the page's address holds all of it, and nothing else does.

import type { Cell, Risk } from "./api";

export interface Choice {
  policy: string | null;
  series: string | null;
  day: string | null;
  columns: Record<string, Cell>; // that were changed by hand
  given: Record<string, number>;
  parameters: Record<string, number>;
  factors: Record<string, number>;
  risk: Risk | null;
  about: string | null;
  trial: number | null;
  versus: string | null;
}

export const nothing: Choice = {
  policy: null,
  series: null,
  day: null,
  columns: {},
  given: {},
  parameters: {},
  factors: {},
  risk: null,
  about: null,
  trial: null,
  versus: null,
};

const MEASURES = ["mean", "cvar", "mean_cvar", "worst_case"] as const;

export function written(choice: Choice): string {
  const query = new URLSearchParams();
  const put = (name: string, value: string | null) => {
    if (value !== null) query.append(name, value);
  };
  put("policy", choice.policy);
  put("series", choice.series);
  put("day", choice.day);
  for (const [name, value] of Object.entries(choice.columns)) put(`x.${name}`, JSON.stringify(value));
  for (const [name, value] of Object.entries(choice.given)) put(`g.${name}`, String(value));
  for (const [name, value] of Object.entries(choice.parameters)) put(`p.${name}`, String(value));
  for (const [name, value] of Object.entries(choice.factors)) put(`f.${name}`, String(value));
  const risk = choice.risk;
  if (risk !== null) {
    put("risk", [risk.measure, risk.level, risk.weight].filter((v) => v !== undefined).join(":"));
  }
  put("about", choice.about);
  put("trial", choice.trial === null ? null : String(choice.trial));
  put("versus", choice.versus);
  return query.toString();
}

export function readChoice(address: string): Choice {
  const found: Choice = { ...nothing, columns: {}, given: {}, parameters: {}, factors: {} };
  for (const [key, text] of new URLSearchParams(address.replace(/^#/, ""))) {
    const name = key.slice(2);
    if (key === "policy" || key === "series" || key === "about") found[key] = text;
    else if (key === "versus") found.versus = text;
    else if (key === "day" && /^\d{4}-\d\d-\d\d$/.test(text)) found.day = text;
    else if (key === "trial") found.trial = finite(text);
    else if (key === "risk") found.risk = riskOf(text);
    else if (key.startsWith("x.")) put(found.columns, name, cellOf(text));
    else if (key.startsWith("g.")) put(found.given, name, finite(text));
    else if (key.startsWith("p.")) put(found.parameters, name, finite(text));
    else if (key.startsWith("f.")) put(found.factors, name, finite(text));
  }
  return found;
}

function put<T>(into: Record<string, T>, name: string, value: T | null | undefined): void {
  if (value !== undefined && (value !== null || name === "")) into[name] = value as T;
}

function finite(text: string): number | null {
  const value = Number(text);
  return text.trim() !== "" && Number.isFinite(value) ? value : null;
}

function cellOf(text: string): Cell | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return value === null || ["string", "number", "boolean"].includes(typeof value)
      ? (value as Cell)
      : undefined;
  } catch {
    return undefined;
  }
}

function riskOf(text: string): Risk | null {
  const [measure, level, weight] = text.split(":");
  const known = MEASURES.find((name) => name === measure);
  if (known === undefined) return null;
  const risk: Risk = { measure: known };
  const numbers = [finite(level ?? ""), finite(weight ?? "")];
  if (numbers[0] != null) risk.level = numbers[0];
  if (numbers[1] != null) risk.weight = numbers[1];
  return risk;
}

export function isMoved(choice: Choice): boolean {
  const moved = Object.keys(choice.parameters).length + Object.keys(choice.factors).length;
  return moved > 0 || choice.risk !== null;
}
