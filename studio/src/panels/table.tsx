// The decisions of a day for all series, with their certificates, and as a file.

import { useEffect, useState } from "preact/hooks";
import { api, type Decided, type DayRow } from "../api";
import { download, type CsvCell } from "../csv";
import { number, weekday } from "../format";

interface Props {
  policy: string;
  day: string;
  picked: string | null;
  pick: (series: string) => void;
}

interface Line {
  from: DayRow;
  answer: Decided["rows"][number];
}

interface Found {
  key: string;
  lines: Line[];
  total: number;
  leftOut: number;
  error: string;
}

const PIECE = 100; // rows that are asked for at once
const FIRST = 12; // that are shown at first
const COLUMNS: [string, string, string][] = [
  ["expected_cost", "expected cost", "mean cost of the decision over its scenarios"],
  ["cost_lower", "90 % interval", "of the realised cost, calibrated on past decisions"],
  ["perfect_information", "knowing saves", "what knowing the outcome would save"],
  ["mean_based", "for the mean", "expected cost of deciding for the mean outcome"],
  ["monte_carlo_error", "± by draws", "standard error of the decision from the number of scenarios"],
];

export function TablePanel({ policy, day, picked, pick }: Props) {
  const key = `${policy} ${day}`;
  const [found, setFound] = useState<Found | null>(null);
  const [all, setAll] = useState(false);
  const [filter, setFilter] = useState("");
  useEffect(() => {
    let wanted = true;
    const keep = (part: Partial<Found>) =>
      wanted && setFound((now) => ({ ...(now?.key === key ? now : { key, lines: [], total: 0, leftOut: 0, error: "" }), ...part }));
    decideAll(policy, day, (part) => { keep(part); return wanted; }).catch((error: Error) => keep({ error: error.message }));
    return () => { wanted = false; };
  }, [key]);
  const current = found?.key === key ? found : null;
  const lines = (current?.lines ?? []).filter((line) => line.from.series.toLowerCase().includes(filter.toLowerCase()));
  const shown = all ? lines.slice(0, 500) : lines.slice(0, FIRST);
  const names = Object.keys(current?.lines.find((line) => line.answer.decision)?.answer.decision ?? { decision: 0 });
  const first = names.slice(0, 4);
  return (
    <section class="card" aria-labelledby="all-series">
      <div class="head">
        <h2 id="all-series">All series on {weekday(day)}</h2>
        <button
          type="button" disabled={!current || current.lines.length === 0 || current.lines.length < current.total}
          onClick={() => current && save(policy, day, names, current.lines)}
        >
          Download CSV
        </button>
      </div>
      <p class="quiet small" role="status">
        {current === null ? "Deciding…" : current.lines.length < current.total ? `${current.lines.length} of ${current.total} decided…` : `${current.lines.length} rows, decided with the policy's own numbers.`}
        {current !== null && current.leftOut > 0 ? ` ${current.leftOut} more series are left out: ask /decide for them.` : ""}
      </p>
      {current?.error && <p class="bad">{current.error}</p>}
      {current !== null && current.lines.length > FIRST && (
        <label class="field inline"><span>Find</span><input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /></label>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label="Decisions of all series">
        <table data-testid="table">
          <thead>
            <tr>
              <th>series</th>
              {first.map((name) => <th key={name} class="number">{name.replace(/^decision_/, "")}</th>)}
              {COLUMNS.map(([name, title]) => <th key={name} class="number">{title}</th>)}
              <th>note</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ from, answer }) => (
              <tr key={from.series} class={from.series === picked ? "picked" : ""}>
                <th scope="row"><button type="button" class="plain" onClick={() => pick(from.series)}>{from.series || "all"}</button></th>
                {first.map((name) => <td key={name} class="number main">{number(answer.decision?.[name])}</td>)}
                {COLUMNS.map(([name]) => (
                  <td key={name} class="number">
                    {name === "cost_lower" && answer.certificate?.["cost_lower"] != null
                      ? `${number(answer.certificate["cost_lower"])} to ${number(answer.certificate["cost_upper"])}`
                      : number(answer.certificate?.[name])}
                  </td>
                ))}
                <td class="note">{answer.note || (from.known ? "" : "columns assumed")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <details>
        <summary>What the columns say</summary>
        <ul class="quiet small">{COLUMNS.map(([name, title, hint]) => <li key={name}><b>{title}</b>: {hint}</li>)}</ul>
      </details>
      {names.length > first.length && <p class="quiet small">The first {first.length} of {names.length} decisions of a row; the CSV has all.</p>}
      {lines.length > FIRST && (
        <button type="button" class="plain" onClick={() => setAll(!all)}>{all ? "Show fewer" : `Show ${Math.min(500, lines.length)}`}</button>
      )}
    </section>
  );
}

async function decideAll(policy: string, day: string, tell: (part: Partial<Found>) => boolean): Promise<void> {
  const found = await api.rows(policy, day);
  const lines: Line[] = [];
  if (!tell({ total: found.rows.length, leftOut: found.left_out })) return;
  for (let start = 0; start < found.rows.length; start += PIECE) {
    const piece = found.rows.slice(start, start + PIECE);
    const answer = await api.decide(policy, piece.map((from) => from.row));
    piece.forEach((from, i) => {
      const row = answer.rows[i];
      if (row !== undefined) lines.push({ from, answer: row });
    });
    if (!tell({ lines: [...lines] })) return;
  }
}

function save(policy: string, day: string, names: string[], lines: Line[]): void {
  const own = Object.keys(lines[0]?.from.row ?? {});
  const figures = Object.keys(lines.find((line) => line.answer.certificate)?.answer.certificate ?? {});
  const rows = lines.map(({ from, answer }): CsvCell[] => [
    ...own.map((name) => from.row[name]),
    ...names.map((name) => answer.decision?.[name]),
    ...figures.map((name) => answer.certificate?.[name]),
    answer.status,
    answer.note,
  ]);
  download(`${policy}-${day}.csv`, [...own, ...names, ...figures, "status", "note"], rows);
}
