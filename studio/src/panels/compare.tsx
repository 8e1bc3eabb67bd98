// Another policy beside this one: what it decides, and what each thinks of the other's decision.

import { type Costing, type View } from "../api";
import { number } from "../format";

interface Props {
  policies: string[];
  policy: string;
  versus: string | null;
  view: View | null; // of this policy, which has judged the other's decision
  other: View | null;
  error: string;
  name: string;
  pick: (versus: string | null) => void;
}

export function ComparePanel({ policies, policy, versus, view, other, error, name, pick }: Props) {
  const others = policies.filter((found) => found !== policy);
  return (
    <section class="card" aria-labelledby="compare">
      <h2 id="compare">Compare two policies</h2>
      {others.length === 0 ? (
        <p class="quiet">Only one policy is served. Start the service with two folders to compare them.</p>
      ) : (
        <label class="field inline">
          <span>Compare with</span>
          <select value={versus ?? ""} onChange={(event) => pick(event.currentTarget.value || null)}>
            <option value="">none</option>
            {others.map((found) => <option key={found}>{found}</option>)}
          </select>
        </label>
      )}
      {error && <p class="bad">{error}</p>}
      {versus !== null && view?.decision && other?.decision && (
        <table data-testid="compare">
          <thead>
            <tr><th></th><th class="number">{name}</th><th class="number">cost, as {policy} sees it</th><th class="number">cost, as {versus} sees it</th></tr>
          </thead>
          <tbody>
            <tr><th scope="row"><i class="key decision" aria-hidden="true" />{policy}</th><td class="number main">{number(view.decision[name])}</td><td class="number">{number(view.expected_cost)}</td><td class="number">{costOf(other.trial)}</td></tr>
            <tr><th scope="row"><i class="key versus" aria-hidden="true" />{versus}</th><td class="number main">{number(other.decision[name])}</td><td class="number">{costOf(view.trial)}</td><td class="number">{number(other.expected_cost)}</td></tr>
          </tbody>
        </table>
      )}
      {versus !== null && (
        <p class="quiet small">Each policy judges by its own scenarios. Which of them is right is told by outcomes: compare past days by <code>forewise evaluate</code>.</p>
      )}
    </section>
  );
}

function costOf(costing: Costing | null | undefined): string {
  if (costing == null) return "–";
  return costing.allowed ? number(costing.expected_cost) : "not allowed";
}
