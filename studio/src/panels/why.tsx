// Why: the explanation in sentences, asked for when it is wanted.

import { useEffect, useState } from "preact/hooks";
import { api, type Row } from "../api";

interface Props {
  policy: string;
  row: Row;
  given: Record<string, unknown[]> | undefined;
  changed: boolean;
}

export function WhyPanel({ policy, row, given, changed }: Props) {
  const key = JSON.stringify([policy, row, given]);
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState<{ key: string; parts: [string, string[]][]; error: string } | null>(null);
  useEffect(() => {
    if (!open || found?.key === key) return;
    let wanted = true;
    const keep = (parts: [string, string[]][], error: string) => wanted && setFound({ key, parts, error });
    api.explain(policy, given === undefined ? { rows: [row] } : { rows: [row], given }).then(
      (answer) => keep(Object.entries(answer.explanation.sentences), ""),
      (error: Error) => keep([], error.message),
    );
    return () => { wanted = false; };
  }, [open, key]);
  const current = found?.key === key ? found : null;
  return (
    <section class="card">
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary><h2>Why?</h2></summary>
        {changed && <p class="quiet">This is about the policy's own decision, without the changes under “What if”.</p>}
        {open && current === null && <p class="quiet" role="status">Looking for reasons…</p>}
        {current?.error && <p class="bad">{current.error}</p>}
        <div class="why" data-testid="why">
          {current?.parts.map(([title, lines]) => (
            <div key={title}>
              <h3>{title}</h3>
              <ul>{lines.map((line) => <li key={line}>{line}</li>)}</ul>
            </div>
          ))}
        </div>
      </details>
    </section>
  );
}
