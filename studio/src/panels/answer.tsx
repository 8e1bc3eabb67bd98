// The answer: what is decided, what it costs, and what deciding for the mean would cost.

import { has, whyNot, type Form, type View } from "../api";
import { largest, number, percent } from "../format";

interface Props {
  form: Form;
  view: View;
  base: View;
  name: string; // of the decision that is looked at
  where: string; // the series and day
}

const ADVICE: Record<string, string> = {
  infeasible: "No decision meets all limits",
  unbounded: "The cost has no least value",
};

export function AnswerPanel({ form, view, base, name, where }: Props) {
  if (view.decision === null) {
    return (
      <section class="card answer" aria-live="polite" data-testid="answer">
        <p class="eyebrow">Proposed decision</p>
        <p class="big bad">{ADVICE[view.status] ?? "No decision"}</p>
        <p>{view.note || `The solver says: ${view.status}.`}</p>
      </section>
    );
  }
  const single = Object.keys(view.decision).length === 1;
  const value = view.decision[name] ?? NaN;
  const before = base.decision?.[name];
  const mean = has(view.mean_based) ? view.mean_based : null;
  const risky = view.risk.measure !== "mean";
  const size = largest(Object.values(view.decision));
  const least = risky ? view.objective : view.expected_cost;
  const others = risky ? mean?.objective : mean?.expected_cost;
  return (
    <section class="card answer" aria-live="polite" aria-atomic="true" data-testid="answer">
      <div>
        <p class="eyebrow">{where || (single ? "Proposed decision" : `Proposed for ${name}`)}</p>
        <p class="big" data-testid="decision" data-value={value}>{number(value, size)}</p>
        <p class="quiet">
          {single ? `proposed, ${form.outcomes.join(", ")}` : `${where ? `${name}, ` : ""}one of ${Object.keys(view.decision).length} decisions`}
          {view.changed && before !== undefined ? ` · was ${number(before)}` : ""}
        </p>
      </div>
      {view.expected_cost !== undefined && (
        <div>
          <p class="eyebrow">Expected cost</p>
          <p class="figure" data-testid="cost">{number(view.expected_cost)}</p>
          <p class="quiet">
            {view.interval && view.interval.lower !== null
              ? `realised: ${number(view.interval.lower)} to ${number(view.interval.upper)} in ${percent(view.interval.level)} of cases`
              : view.changed && base.expected_cost != null
                ? `was ${number(base.expected_cost)}`
                : view.interval
                  ? "too few past decisions for an interval"
                  : ""}
          </p>
        </div>
      )}
      {risky && (
        <div>
          <p class="eyebrow">Risk that is minimised</p>
          <p class="figure">{number(view.objective)}</p>
        </div>
      )}
      {mean !== null && (
        <div>
          <p class="eyebrow"><i class="key mean" aria-hidden="true" />Deciding for the mean</p>
          <p class="figure">{number(single ? mean.decision[name] : others)}</p>
          <p class="quiet">{compared(others, least, mean.allowed)}</p>
        </div>
      )}
      {whyNot(view.mean_based) !== null && <p class="quiet">{capital(whyNot(view.mean_based) ?? "")}.</p>}
      <Remarks view={view} />
    </section>
  );
}

function compared(others: number | null | undefined, least: number | null | undefined, allowed: boolean) {
  if (!allowed) return "breaks a limit in these scenarios";
  if (others == null || least == null) return "";
  const more = others - least;
  if (Math.abs(more) <= 1e-9 * Math.abs(least)) return "costs the same";
  const share = least > 0 ? ` (${more > 0 ? "+" : "−"}${percent(Math.abs(more) / least)})` : "";
  return `costs ${number(Math.abs(more))} ${more > 0 ? "more" : "less"}${share}`;
}

const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);

function Remarks({ view }: { view: View }) {
  const remarks = [
    ...(view.extrapolates ? ["Unlike anything in training: the forecast may be far off."] : []),
    ...(view.certainty_equivalent ? [`Uncertainty does not matter here: ${view.certainty_equivalent}.`] : []),
    ...view.notes,
  ];
  if (remarks.length === 0) return null;
  return <ul class="remarks">{remarks.map((text) => <li key={text}>{text}</li>)}</ul>;
}
