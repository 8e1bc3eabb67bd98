// What if: costs, limits and risk that can be dragged.

import type { Entry, Parameter, Risk, View } from "../api";
import { number, shortly } from "../format";
import { isMoved, type Choice } from "../state";

interface Props {
  view: View;
  choice: Choice;
  change: (part: Partial<Choice>) => void;
}

const RISKS = {
  mean: "the mean cost",
  cvar: "the worst cases (CVaR)",
  mean_cvar: "mean and worst cases",
  worst_case: "the worst case alone",
};
const rank = (p: Parameter) => (p.entries.length === 1 ? 0 : 1);
const FEW = 6; // sliders that are open at first

export function WhatIfPanel({ view, choice, change }: Props) {
  const entries = view.parameters.reduce((n, p) => n + p.entries.length, 0);
  // Numbers before vectors, and what is all 0 behind them: most who look for a limit want these.
  const unused = (p: Parameter) => p.entries.every((entry) => entry.base === 0 && entry.value === 0);
  const used = view.parameters.filter((p) => !unused(p)).sort((a, b) => rank(a) - rank(b));
  const zero = view.parameters.filter(unused);
  return (
    <section class="card controls" aria-labelledby="what-if">
      <div class="head">
        <h2 id="what-if">What if</h2>
        <button
          type="button"
          class="plain"
          disabled={!isMoved(choice)}
          onClick={() => change({ parameters: {}, factors: {}, risk: null })}
        >
          Reset
        </button>
      </div>
      {used.map((parameter) => (
        <ParameterSliders key={parameter.field} {...{ parameter, choice, change }} open={entries <= FEW} />
      ))}
      {zero.length > 0 && (
        <details class="group">
          <summary>What is 0 ({shortly(zero.map((p) => words(p.field)))})</summary>
          {zero.map((parameter) => (
            <ParameterSliders key={parameter.field} {...{ parameter, choice, change }} open={false} />
          ))}
        </details>
      )}
      {entries === 0 && (
        <p class="quiet">
          {view.outcomes.length === 0
            ? "A direct rule has learned its decisions for fixed costs: it cannot say what it would decide with others."
            : "This problem has no costs or limits that could be moved: its numbers are constants of its own code."}
        </p>
      )}
      {view.outcomes.length > 0 && <RiskField {...{ view, choice, change }} />}
    </section>
  );
}

interface SlidersProps {
  parameter: Parameter;
  choice: Choice;
  change: Props["change"];
  open: boolean;
}

function ParameterSliders({ parameter, choice, change, open }: SlidersProps) {
  const several = parameter.entries.length > 1;
  const move = (name: string, value: number | null) => {
    const { [name]: _, ...others } = choice.parameters;
    change({ parameters: value === null ? others : { ...others, [name]: value } });
  };
  const sliders = parameter.entries.map((entry) => (
    <Slider
      key={entry.name}
      entry={{ ...entry, value: choice.parameters[entry.name] ?? entry.value }}
      moved={entry.name in choice.parameters}
      move={(value) => move(entry.name, value)}
    />
  ));
  if (!several) return <>{sliders}</>;
  const factor = choice.factors[parameter.field] ?? 1;
  return (
    <div class="group">
      {parameter.entries.some((entry) => entry.base !== 0) && <Slider
        entry={{ name: `all ${words(parameter.field)} ×`, base: 1, value: factor, low: 0, high: 3 }}
        moved={parameter.field in choice.factors}
        move={(value) => {
          const { [parameter.field]: _, ...others } = choice.factors;
          change({ factors: value === null ? others : { ...others, [parameter.field]: value } });
        }}
      />}
      <details open={open && parameter.entries.length <= 3}>
        <summary>Each {words(parameter.field)}</summary>
        {sliders}
      </details>
    </div>
  );
}

const words = (name: string) => name.replaceAll("_", " ");

interface SliderProps {
  entry: Entry;
  moved: boolean;
  move: (value: number | null) => void;
}

function stepOf(low: number, high: number): number {
  const size = (high - low) / 120;
  const unit = 10 ** Math.floor(Math.log10(size || 1));
  return [1, 2, 5, 10].map((m) => m * unit).find((step) => step >= size * 0.999) ?? size;
}

export function Slider({ entry, moved, move }: SliderProps) {
  const step = stepOf(entry.low, entry.high);
  const value = entry.value;
  const low = Math.min(entry.low, value);
  const high = Math.max(entry.high, value);
  const label = words(entry.name);
  const set = (next: number) => {
    if (Number.isFinite(next)) move(Number(next.toPrecision(12)));
  };
  return (
    <div class={moved ? "slider changed" : "slider"}>
      <div class="head">
        <span aria-hidden="true">{label}</span>
        <span class="row">
          {moved && (
            <button type="button" class="plain" onClick={() => move(null)} aria-label={`Reset ${label}`}>
              was {number(entry.base)} ↺
            </button>
          )}
          <input
            type="number"
            step="any"
            aria-label={`${label}, typed`}
            value={Number(value.toPrecision(6))}
            onChange={(event) => event.currentTarget.value !== "" && set(Number(event.currentTarget.value))}
          />
        </span>
      </div>
      <input
        type="range"
        aria-label={label}
        min={low}
        max={high}
        step={step}
        value={value}
        onInput={(event) => set(Number(event.currentTarget.value))}
      />
    </div>
  );
}

function RiskField({ view, choice, change }: Props) {
  const why = view.risk.unavailable;
  if (why) return <p class="quiet">The risk cannot be moved: {why}.</p>;
  const risk: Risk = choice.risk ?? view.risk;
  const set = (part: Partial<Risk>) => {
    const { unavailable: _, ...now } = { ...risk, ...part };
    change({ risk: now });
  };
  const tail = risk.measure === "cvar" || risk.measure === "mean_cvar";
  return (
    <div class="group">
      <label class={choice.risk === null ? "field" : "field changed"}>
        <span>Minimise</span>
        <select
          value={risk.measure}
          onChange={(event) => {
            const measure = event.currentTarget.value as Risk["measure"];
            set({ measure, level: risk.level ?? 0.9, weight: risk.weight ?? 0.5 });
          }}
        >
          {Object.entries(RISKS).map(([name, text]) => <option key={name} value={name}>{text}</option>)}
        </select>
      </label>
      {tail && (
        <Slider
          entry={{ name: "risk level", base: 0.9, value: risk.level ?? 0.9, low: 0, high: 0.99 }}
          moved={false}
          move={(value) => value !== null && set({ level: Math.min(0.999, Math.max(0, value)) })}
        />
      )}
      {risk.measure === "mean_cvar" && (
        <Slider
          entry={{ name: "weight of the worst cases", base: 0.5, value: risk.weight ?? 0.5, low: 0, high: 1 }}
          moved={false}
          move={(value) => value !== null && set({ weight: Math.min(1, Math.max(0, value)) })}
        />
      )}
    </div>
  );
}
