// Which decision: policy, series and day, and the columns that are known ahead.

import { entriesOf } from "../given";
import type { Cell, DayRow, Field, Form } from "../api";
import { shifted, weekday } from "../format";
import type { Choice } from "../state";

interface Props {
  policies: string[];
  form: Form;
  choice: Choice;
  row: DayRow | null;
  change: (part: Partial<Choice>) => void;
}

// On a phone the answer should be seen at once.
const narrow = matchMedia("(max-width: 860px)").matches;
const LISTED = 300; // series of a menu; more are typed

export function ContextPanel({ policies, form, choice, row, change }: Props) {
  const days = form.days;
  const day = choice.day ?? days?.next ?? null;
  return (
    <section class="card controls" aria-labelledby="which">
      <h2 id="which">Which decision</h2>
      {policies.length > 1 && (
        <label class="field">
          <span>Policy</span>
          <select
            value={form.policy}
            onChange={(event) =>
              change({ policy: event.currentTarget.value, columns: {}, parameters: {}, factors: {},
                risk: null, about: null, trial: null, versus: null, given: {} })
            }
          >
            {policies.map((name) => <option key={name}>{name}</option>)}
          </select>
        </label>
      )}
      {form.series !== null && form.series.names.length > 1 && (
        <SeriesField form={form} choice={choice} change={change} />
      )}
      {days !== null && day !== null && (
        <div class="field">
          <label for="day">Day</label>
          <div class="row">
            <button type="button" aria-label="Day before" onClick={() => change({ day: shifted(day, -1) })}>‹</button>
            <input
              id="day"
              type="date"
              value={day}
              onChange={(event) => event.currentTarget.value && change({ day: event.currentTarget.value })}
            />
            <button type="button" aria-label="Day after" onClick={() => change({ day: shifted(day, 1) })}>›</button>
          </div>
          <small>
            {weekday(day)}
            {day === days.next ? ", the next day to decide" : ""}
          </small>
          {day <= days.learned && (
            <small class="warn">The policy has learned from this day: it looks better here than it is.</small>
          )}
        </div>
      )}
      {form.columns.length > 0 && (
        <details class="known" open={!narrow || days === null}>
          <summary>{days === null ? "Context" : "Known ahead"}</summary>
          {form.columns.map((field) => (
            <CellField
              key={field.name}
              field={field}
              value={choice.columns[field.name] ?? row?.row[field.name] ?? field.value}
              changed={field.name in choice.columns}
              change={(value) => change({ columns: { ...choice.columns, [field.name]: value } })}
            />
          ))}
          {row !== null && !row.known && (
            <small>Not in the table: as it was last. Correct what will be different.</small>
          )}
        </details>
      )}
      {form.given.length > 0 && (
        <fieldset>
          <legend>Given to the problem</legend>
          {form.given.flatMap(entriesOf).map((name) => (
            <CellField
              key={name}
              field={{ name, kind: "number", value: 0 }}
              value={choice.given[name] ?? 0}
              changed={false}
              change={(value) => change({ given: { ...choice.given, [name]: Number(value) } })}
            />
          ))}
        </fieldset>
      )}
    </section>
  );
}

function SeriesField({ form, choice, change }: Pick<Props, "form" | "choice" | "change">) {
  const series = form.series;
  if (series === null) return null;
  const value = choice.series ?? series.names[0] ?? "";
  const label = series.columns.join(", ") || "Series";
  if (series.names.length <= LISTED) {
    return (
      <label class="field">
        <span>{label}</span>
        <select value={value} onChange={(event) => change({ series: event.currentTarget.value, columns: {} })}>
          {series.names.map((name) => <option key={name}>{name}</option>)}
        </select>
      </label>
    );
  }
  return (
    <label class="field">
      <span>{label}</span>
      <input
        list="series-names"
        value={value}
        onChange={(event) =>
          series.names.includes(event.currentTarget.value) &&
          change({ series: event.currentTarget.value, columns: {} })
        }
      />
      <datalist id="series-names">{series.names.map((name) => <option key={name} value={name} />)}</datalist>
      {series.count > series.names.length && (
        <small>{series.names.length} of {series.count} series are listed.</small>
      )}
    </label>
  );
}

interface CellProps {
  field: Field;
  value: Cell;
  changed: boolean;
  change: (value: Cell) => void;
}

function CellField({ field, value, changed, change }: CellProps) {
  const kind = changed ? "field changed" : "field";
  if (field.kind === "boolean") {
    const on = value === true || value === 1;
    return (
      <label class={`${kind} check`}>
        <input type="checkbox" checked={on} onChange={(event) => change(event.currentTarget.checked)} />
        <span>{field.name}</span>
      </label>
    );
  }
  return (
    <label class={kind}>
      <span>{field.name}</span>
      {field.kind === "category" && field.choices !== undefined && field.choices.length < 200 ? (
        <select value={String(value)} onChange={(event) => change(event.currentTarget.value)}>
          {[...new Set([...field.choices, String(value)])].map((name) => <option key={name}>{name}</option>)}
        </select>
      ) : field.kind === "number" ? (
        <input
          type="number"
          step="any"
          value={value === null ? "" : String(value)}
          onChange={(event) => {
            const typed = event.currentTarget.value;
            change(typed === "" ? null : Number(typed));
          }}
        />
      ) : field.kind === "date" ? (
        <input
          type="date"
          value={value === null ? "" : String(value)}
          onChange={(event) => change(event.currentTarget.value || null)}
        />
      ) : (
        <input
          type="text"
          value={value === null ? "" : String(value)}
          onChange={(event) => change(event.currentTarget.value || null)}
        />
      )}
    </label>
  );
}
