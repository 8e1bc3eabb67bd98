// Several decisions: a bar for each, and what they share.

import { has, type View } from "../api";
import { largest, number } from "../format";

interface Props {
  view: View;
  base: View;
  name: string;
  pick: (name: string) => void;
}

const FIRST = 40;

export function ItemsPanel({ view, base, name, pick }: Props) {
  const decision = view.decision ?? {};
  const names = Object.keys(decision);
  const shown = names.slice(0, FIRST);
  const size = largest(Object.values(decision));
  const ranges = view.comparable ? new Map(view.outcomes.map((o) => [o.name, o.quantiles])) : null;
  const ends = shown.flatMap((n) => [decision[n] ?? 0, ranges?.get(n)?.[4] ?? 0, ranges?.get(n)?.[0] ?? 0]);
  const low = Math.min(0, ...ends);
  const high = Math.max(...ends) || 1;
  const place = (value: number) => 100 * ((value - low) / (high - low));
  return (
    <section class="card" aria-labelledby="items">
      <h2 id="items">All decisions</h2>
      <table class="items" data-testid="items">
        <thead>
          <tr>
            <th>decision</th>
            <th class="number">value</th>
            <th class="bars">{ranges === null ? "" : "bar: decision, line: 5 to 95 % of the outcome"}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((item) => {
            const value = decision[item] ?? 0;
            const before = base.decision?.[item];
            const range = ranges?.get(item);
            return (
              <tr key={item} class={item === name ? "picked" : ""}>
                <th scope="row">
                  <button type="button" class="plain" aria-pressed={item === name} onClick={() => pick(item)}>{item}</button>
                </th>
                <td class="number">{number(value, size)}</td>
                <td class="bars">
                  <svg height="22" width="100%" aria-hidden="true">
                    <rect
                      x={`${place(Math.min(0, value))}%`} width={`${Math.abs(place(value) - place(0))}%`}
                      y="5" height="12" rx="2" fill="var(--blue)"
                    />
                    {view.changed && before !== undefined && (
                      <line x1={`${place(before)}%`} x2={`${place(before)}%`} y1="2" y2="20" stroke="var(--ink)" stroke-width="1.5" stroke-dasharray="2 2" />
                    )}
                    {range !== undefined && (
                      <line x1={`${place(range[0])}%`} x2={`${place(range[4])}%`} y1="19.5" y2="19.5" stroke="var(--quiet)" stroke-width="2.5" stroke-linecap="round" />
                    )}
                  </svg>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {names.length > FIRST && <p class="quiet">The first {FIRST} of {names.length}; the table's CSV has all.</p>}
      {!view.comparable && view.outcomes.length > 0 && (
        <p class="quiet">What is decided may have another unit than what is uncertain: it is drawn apart.</p>
      )}
    </section>
  );
}

export function PricesPanel({ view }: { view: View }) {
  const found = view.constraints;
  if (found === undefined) return null;
  return (
    <section class="card" aria-labelledby="prices">
      <h2 id="prices">Limits that bind, and their shadow prices</h2>
      {!has(found) ? (
        <p class="quiet">Not known: {found.unavailable}.</p>
      ) : (found as { name: string; shadow_price: number }[]).length === 0 ? (
        <p class="quiet">None: no limit holds this decision back.</p>
      ) : (
        <table>
          <thead><tr><th>limit</th><th class="number">expected cost, for one unit more</th></tr></thead>
          <tbody data-testid="prices">
            {(found as { name: string; shadow_price: number }[]).map((binding) => (
              <tr key={binding.name}>
                <th scope="row">{binding.name}</th>
                <td class="number">{binding.shadow_price > 0 ? "+" : ""}{number(binding.shadow_price)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
