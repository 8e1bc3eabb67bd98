// The pictures of one decision: what may happen, what it costs, what happened before.

import { useCallback } from "preact/hooks";
import { has, whyNot, type Curve, type Outcome, type Uncertainty, type View } from "../api";
import { Chart } from "../charts/chart";
import { drawCost } from "../charts/cost";
import { drawOutcome, type Mark } from "../charts/outcome";
import { drawPast } from "../charts/past";
import { change, number, percent, weekday } from "../format";

interface Props {
  view: View;
  base: View; // with scenarios and history
  other: { name: string; view: View } | null;
  name: string;
  day: string | null;
  seen: number | null; // what happened, where it is known
  trial: number | null;
  tryOut: (value: number | null) => void;
}

export function Figures(props: Props) {
  const { view, base, other, name, day, seen } = props;
  const place = Math.max(0, view.outcomes.findIndex((outcome) => outcome.name === name));
  const outcome = base.outcomes[place];
  const values = has(base.scenarios) ? (base.scenarios.values[place] ?? []) : [];
  const weights = has(base.scenarios) ? base.scenarios.weights : [];
  const theirs = other !== null && has(other.view.scenarios) ? other.view.scenarios : null;
  const split = view.comparable ? (view.decision?.[name] ?? null) : null;
  const marks = view.comparable ? marksOf(props) : [];
  if (seen !== null) marks.push({ value: seen, label: "happened", kind: "seen" });
  const domain = domainOf(values, view.comparable && has(view.curve) ? view.curve : null, marks);
  const sure = has(base.uncertainty) ? (base.uncertainty as Uncertainty[])[place] : undefined;
  const enough = split === null ? null : weights.reduce((sum, w, i) => sum + ((values[i] ?? 0) <= split ? w : 0), 0);
  const drawn = useCallback(
    (width: number) =>
      drawOutcome(
        {
          values, weights, marks, domain, split,
          other: theirs === null ? null : { values: theirs.values[place] ?? [], weights: theirs.weights },
          mean: outcome?.mean ?? 0,
          epistemic: sure === undefined ? null : Math.sqrt(sure.epistemic),
          name: outcome?.name ?? "",
        },
        width,
      ),
    [view, base, other, name, seen, props.trial],
  );
  return (
    <section class="card pictures" aria-labelledby="pictures">
      <h2 id="pictures">What may happen, and what it costs</h2>
      {values.length > 0 && outcome !== undefined ? (
        <Chart title={`Predicted ${outcome.name}, ${values.length} scenarios`} said={saidOf(outcome, enough)} draw={drawn}>
          <ul class="legend">
            {enough !== null && (
              <>
                <li><i class="key enough" />enough: {percent(enough)}</li>
                <li><i class="key short" />too little: {percent(1 - enough)}</li>
              </>
            )}
            {marks.map((mark) => <li key={mark.label}><i class={`key ${mark.kind}`} />{mark.label} {number(mark.value)}</li>)}
            {sure !== undefined && sure.epistemic > 0 && <li><i class="key sure" />the mean, ± what is not known of it</li>}
            {theirs !== null && <li><i class="key outline" />as {other?.name} sees it</li>}
          </ul>
        </Chart>
      ) : (
        <p class="quiet">{whyNot(base.scenarios) ?? "There are no scenarios."}</p>
      )}
      <Sure base={base} sure={sure} />
      <CostFigure {...props} domain={view.comparable ? domain : null} />
      {base.history && outcome !== undefined && day !== null && (
        <PastFigure base={base} outcome={outcome} day={day} decision={split} />
      )}
    </section>
  );
}

function marksOf({ view, other, name, trial }: Props): Mark[] {
  const marks: Mark[] = [];
  const decision = view.decision?.[name];
  if (has(view.mean_based)) {
    marks.push({ value: view.mean_based.decision[name] ?? NaN, label: "for the mean", kind: "mean" });
  }
  const theirs = other?.view.decision?.[name];
  if (other !== null && theirs !== undefined) marks.push({ value: theirs, label: other.name, kind: "versus" });
  if (trial !== null) marks.push({ value: trial, label: "yours", kind: "trial" });
  if (decision !== undefined) marks.push({ value: decision, label: "proposed", kind: "decision" });
  return marks.filter((mark) => Number.isFinite(mark.value));
}

function domainOf(values: number[], curve: Curve | null, marks: Mark[]): [number, number] {
  const ends = [...values, ...(curve?.values ?? []), ...marks.map((mark) => mark.value)];
  if (ends.length === 0) return [0, 1];
  const low = Math.min(...ends);
  const high = Math.max(...ends);
  return low < high ? [low, high] : [low - 1, high + 1];
}

function saidOf(outcome: Outcome, enough: number | null): string {
  const [low, , middle, , high] = outcome.quantiles;
  const text = `Distribution of ${outcome.name}: 90 percent between ${number(low)} and ${number(high)}, median ${number(middle)}, mean ${number(outcome.mean)}.`;
  return enough === null ? text : `${text} The decision is enough in ${percent(enough)} of the scenarios.`;
}

function Sure({ base, sure }: { base: View; sure: Uncertainty | undefined }) {
  const why = whyNot(base.uncertainty);
  if (why !== null) return <p class="quiet small">How much of the spread is ignorance is not known: {why}.</p>;
  if (sure === undefined) return null;
  const total = sure.epistemic + sure.aleatoric;
  if (!(total > 0)) return <p class="quiet small">A point forecast, without uncertainty.</p>;
  const share = sure.epistemic / total;
  return (
    <div class="sure">
      <div class="split" role="img" aria-label={`${percent(share)} of the variance is ignorance, ${percent(1 - share)} is noise`}>
        <svg width="100%" height="10" aria-hidden="true">
          <rect width="100%" height="10" rx="3" fill="var(--enough)" />
          <rect width={`${100 * share}%`} height="10" rx="3" fill="var(--sure)" />
        </svg>
      </div>
      <p class="quiet small">
        <b>{percent(share)}</b> of the variance is ignorance that more data would reduce; the rest is noise. Standard
        deviation {number(Math.sqrt(total))}.
      </p>
    </div>
  );
}

function CostFigure(props: Props & { domain: [number, number] | null }) {
  const { view, base, other, name, trial, tryOut } = props;
  const curve = has(view.curve) ? view.curve : null;
  const before = view.changed && has(base.curve) && base.curve.name === curve?.name ? base.curve : null;
  const versus = other !== null && has(other.view.curve) ? other.view.curve : null;
  const domain = props.domain ?? domainOf([], curve, trial === null ? [] : [{ value: trial, label: "", kind: "trial" }]);
  const risky = view.risk.measure !== "mean";
  const marks = marksWithCosts(props, curve, risky);
  const draw = useCallback(
    (width: number) =>
      drawCost(
        { curve: curve as Curve, before, versus, marks, domain,
          label: risky ? "risk of the cost" : "expected cost", axis: name },
        width,
      ),
    [view, base, other, name, trial],
  );
  if (curve === null) {
    const why = whyNot(view.curve);
    return why === null ? null : <p class="quiet">The cost around the decision cannot be shown: {why}.</p>;
  }
  const own = view.trial;
  const others = Object.keys(view.decision ?? {}).length > 1;
  const value = view.decision?.[name] ?? 0;
  const low = domain[0];
  const high = domain[1];
  const cost = risky ? view.objective : view.expected_cost;
  const theirs = risky ? own?.objective : own?.expected_cost;
  return (
    <>
      <Chart
        title={`${risky ? "Risk of the cost" : "Expected cost"} of other values of ${name}${others ? `, ${curve.others === "kept" ? "the others kept" : "the others decided anew"}` : ""}`}
        said={`Cost curve of ${name}: least at ${number(value)}, with ${number(cost)}; ${ends(curve)}`}
        draw={draw}
      >
        {(before !== null || versus !== null) && (
          <ul class="legend">
            {before !== null && <li><i class="key dashed" />with the policy's own numbers</li>}
            {versus !== null && <li><i class="key outline" />as {other?.name} sees it</li>}
          </ul>
        )}
      </Chart>
      {curve.others === "kept" && <div class="slider trial">
        <div class="head">
          <label for="trial"><i class="key trial" aria-hidden="true" />Your own {name}</label>
          <span class="row">
            <output data-testid="trial">
              {trial === null ? "drag to try one" : `${number(trial)}: ${own === null || own === undefined ? "…" : own.allowed && theirs != null && cost != null ? `costs ${number(theirs)} (${change(theirs - cost)})` : "not allowed"}`}
            </output>
            {trial !== null && <button type="button" class="plain" onClick={() => tryOut(null)}>clear</button>}
          </span>
        </div>
        <input
          id="trial" type="range" min={low} max={high} step={(high - low) / 200 || 1} value={trial ?? value}
          aria-valuetext={number(trial ?? value)}
          onInput={(event) => tryOut(Number(Number(event.currentTarget.value).toPrecision(8)))}
        />
      </div>}
    </>
  );
}

function ends(curve: Curve): string {
  const last = curve.values.length - 1;
  const at = (i: number) => {
    const cost = curve.costs[i];
    return cost == null ? `${number(curve.values[i])} is not allowed` : `${number(curve.values[i])} costs ${number(cost)}`;
  };
  return `${at(0)}, ${at(last)}.`;
}

function marksWithCosts({ view, name, trial }: Props, curve: Curve | null, risky: boolean) {
  const key = risky ? "objective" : "expected_cost";
  const found: (Mark & { cost: number })[] = [];
  const add = (kind: Mark["kind"], label: string, value: number | undefined | null, cost: number | undefined | null) => {
    if (value != null && cost != null) found.push({ kind, label, value, cost });
  };
  if (curve === null) return found;
  // With several decisions, that for the mean differs in the others too: it is not on this curve.
  const single = Object.keys(view.decision ?? {}).length === 1;
  if (has(view.mean_based) && single) add("mean", "for the mean", view.mean_based.decision[name], view.mean_based[key]);
  if (trial !== null && view.trial) add("trial", "yours", view.trial.decision[name], view.trial[key]);
  add("decision", "proposed", view.decision?.[name], view[key]);
  return found;
}

function PastFigure({ base, outcome, day, decision }: { base: View; outcome: Outcome; day: string; decision: number | null }) {
  const history = base.history;
  const draw = useCallback(
    (width: number) =>
      drawPast(
        { days: history?.days ?? [], values: history?.outcomes[outcome.name] ?? [], day,
          quantiles: outcome.quantiles, decision, name: outcome.name },
        width,
      ),
    [base, day, decision],
  );
  if (!history || history.days.length === 0) return null;
  return (
    <Chart
      title={`${outcome.name} of the last weeks, and predicted for ${weekday(day)}`}
      said={`${history.days.length} days of ${outcome.name} before ${day}. Predicted: 90 percent between ${number(outcome.quantiles[0])} and ${number(outcome.quantiles[4])}.`}
      draw={draw}
    />
  );
}
