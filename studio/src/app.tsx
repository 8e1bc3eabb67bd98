// The page: what is chosen (in the address), what the service says of it, and the panels.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, has, Refused, setToken, type DayRow, type Form, type Row, type View, type WhatIf } from "./api";
import { valueOf } from "./given";
import { Latest } from "./latest";
import { weekday } from "./format";
import { AnswerPanel } from "./panels/answer";
import { ComparePanel } from "./panels/compare";
import { ContextPanel } from "./panels/context";
import { Figures } from "./panels/figures";
import { Header } from "./panels/header";
import { ItemsPanel, PricesPanel } from "./panels/items";
import { TablePanel } from "./panels/table";
import { TokenPanel } from "./panels/token";
import { WhatIfPanel } from "./panels/whatif";
import { WhyPanel } from "./panels/why";
import { isMoved, readChoice, written, type Choice } from "./state";

interface Answered {
  key: string; // of the question
  view: View;
}

export function App() {
  const [policies, setPolicies] = useState<string[] | null>(null);
  const [locked, setLocked] = useState<"no" | "locked" | "wrong">("no");
  const [broken, setBroken] = useState("");
  const load = () =>
    api.policies().then(
      (found) => {
        setLocked("no");
        setPolicies(found.policies.map((policy) => policy.policy));
      },
      (error: Error) => {
        if (error instanceof Refused && error.status === 401) {
          setToken(null);
          setLocked((now) => (now === "no" ? "locked" : "wrong"));
        } else setBroken(error.message);
      },
    );
  useEffect(() => void load(), []);
  return (
    <>
      <Header />
      <main>
        {broken && <p class="card bad" role="alert">{broken}</p>}
        {locked !== "no" && (
          <TokenPanel wrong={locked === "wrong"} enter={(token) => { setToken(token); void load(); }} />
        )}
        {locked === "no" && policies !== null && <Studio policies={policies} />}
      </main>
    </>
  );
}

function useChoice(): [Choice, (part: Partial<Choice>) => void] {
  const [choice, setChoice] = useState<Choice>(() => readChoice(location.hash));
  useEffect(() => {
    const follow = () => setChoice(readChoice(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const text = written(choice);
  useEffect(() => {
    // Browsers allow some hundred changes of the address a minute: a drag makes more.
    const timer = setTimeout(() => history.replaceState(null, "", text === "" ? location.pathname : `#${text}`), 150);
    return () => clearTimeout(timer);
  }, [text]);
  return [choice, (part) => setChoice((now) => ({ ...now, ...part }))];
}

function Studio({ policies }: { policies: string[] }) {
  const [choice, change] = useChoice();
  const policy = policies.find((name) => name === choice.policy) ?? policies[0] ?? "";
  const { form, row, error } = useRow(policy, choice);
  const asked = useMemo(() => (form === null ? null : questionOf(form, row, choice)), [form, row, choice.columns, choice.given, choice.about]);
  const { base, view, problem, stale } = useViews(policy, asked, choice);
  const compared = useComparison(policy, policies, choice, asked, view);
  const message = error || problem;
  if (form === null) return message ? <p class="card bad" role="alert">{message}</p> : <p class="quiet" role="status">Loading…</p>;
  if (form.missing !== "") {
    return (
      <div class="columns">
        <div class="side"><ContextPanel policies={policies} form={{ ...form, columns: [] }} choice={choice} row={null} change={change} /></div>
        <div class="middle"><p class="card">Nothing can be decided here: {form.missing}. The API takes the past in each request.</p></div>
      </div>
    );
  }
  const name = view?.decision ? (choice.about !== null && choice.about in view.decision ? choice.about : nameOf(view)) : "";
  const several = view?.decision != null && Object.keys(view.decision).length > 1;
  const day = form.days === null ? null : (choice.day ?? form.days.next);
  return (
    <div class={stale && view !== null ? "columns stale" : "columns"} aria-busy={stale}>
      <div class="side">
        <ContextPanel policies={policies} form={form} choice={choice} row={row} change={change} />
        {view !== null && <WhatIfPanel view={view} choice={choice} change={change} />}
      </div>
      <div class="middle">
        {message && <p class="card bad" role="alert">{message}</p>}
        {view !== null && base !== null && (
          <>
            <AnswerPanel form={form} view={view} base={base} name={name} where={[row?.series, day === null ? "" : weekday(day)].filter(Boolean).join(" · ")} />
            {several && <ItemsPanel view={view} base={base} name={name} pick={(about) => change({ about, trial: null })} />}
            {view.decision !== null && form.scenarios && (
              <Figures
                view={view} base={base} name={name} day={day}
                other={compared.view !== null && choice.versus !== null ? { name: choice.versus, view: compared.view } : null}
                seen={row?.outcome[base.outcomes.length === 1 ? (base.outcomes[0]?.name ?? "") : name] ?? null}
                trial={choice.trial} tryOut={(trial) => change({ trial })}
              />
            )}
            {form.scenarios && <PricesPanel view={view} />}
            {asked !== null && form.scenarios && <WhyPanel policy={policy} row={asked.rows[0]} given={asked.given} changed={view.changed} />}
          </>
        )}
        {form.series !== null && day !== null && (
          <TablePanel policy={policy} day={day} picked={row?.series ?? null} pick={(series) => change({ series, columns: {} })} />
        )}
        {form.scenarios && view !== null && (
          <ComparePanel
            policies={policies} policy={policy} versus={choice.versus} name={name} error={compared.error}
            view={compared.judged} other={compared.view} pick={(versus) => change({ versus })}
          />
        )}
        <footer class="quiet small">
          {form.policy}, version {form.version.slice(0, 8)} · <a href="/studio/licences.txt">licences of this page</a>
        </footer>
      </div>
    </div>
  );
}

function nameOf(view: View): string {
  if (has(view.curve)) return view.curve.name;
  return Object.keys(view.decision ?? {})[0] ?? "";
}

function questionOf(form: Form, row: DayRow | null, choice: Choice): WhatIf | null {
  if (form.missing !== "" || (form.series !== null && row === null)) return null;
  const known = new Set(form.columns.map((field) => field.name));
  const own: Row = row?.row ?? Object.fromEntries(form.columns.map((field) => [field.name, field.value]));
  const typed = Object.entries(choice.columns).filter(([name]) => known.has(name));
  const asked: WhatIf = { rows: [{ ...own, ...Object.fromEntries(typed) }] };
  if (form.given.length > 0) {
    asked.given = Object.fromEntries(form.given.map((given) => [given.name, [valueOf(given, choice.given)]]));
  }
  if (choice.about !== null) asked.about = choice.about;
  return asked;
}

// The form of the policy, and the row of the series and day.
function useRow(policy: string, choice: Choice): { form: Form | null; row: DayRow | null; error: string } {
  const [form, setForm] = useState<Form | null>(null);
  const [row, setRow] = useState<{ key: string; row: DayRow | null } | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let wanted = true;
    setError("");
    api.form(policy).then((found) => wanted && setForm(found), (e: Error) => wanted && setError(e.message));
    return () => { wanted = false; };
  }, [policy]);
  const own = form?.policy === policy ? form : null;
  const series = own?.series ? (own.series.names.includes(choice.series ?? "") ? choice.series : (own.series.names[0] ?? null)) : null;
  const day = own?.days ? (choice.day ?? own.days.next) : null;
  const key = JSON.stringify([policy, series, day]);
  useEffect(() => {
    if (series === null || day === null) return;
    let wanted = true;
    api.rows(policy, day, series).then(
      (found) => {
        if (!wanted) return;
        setError("");
        setRow({ key, row: found.rows[0] ?? null });
      },
      (e: Error) => wanted && setError(e.message),
    );
    return () => { wanted = false; };
  }, [key]);
  return { form: own, row: row?.key === key ? row.row : null, error };
}

function movedBy(choice: Choice, name: string | null): Partial<WhatIf> {
  const moved: Partial<WhatIf> = { parameters: choice.parameters, factors: choice.factors };
  if (choice.risk !== null) moved.risk = choice.risk;
  if (name !== null) {
    moved.about = name; // the same one, whichever becomes the largest
    if (choice.trial !== null) moved.trial = { [name]: choice.trial };
  }
  return moved;
}

// The policy's own view of a question, and the one with what is moved.
function useViews(policy: string, asked: WhatIf | null, choice: Choice) {
  const [base, setBase] = useState<Answered | null>(null);
  const [view, setView] = useState<Answered | null>(null);
  const [problem, setProblem] = useState("");
  const latest = useRef(new Latest());
  const key = asked === null ? "" : JSON.stringify([policy, asked]);
  const now = useRef(key);
  now.current = key;
  useEffect(() => {
    if (asked === null) return;
    api.whatif(policy, asked).then(
      (found) => {
        if (now.current !== key) return;
        setProblem("");
        setBase({ key, view: found });
      },
      (error: Error) => {
        if (now.current !== key) return;
        setBase(null); // an old answer beside a new question would be a wrong one
        setView(null);
        setProblem(error.message);
      },
    );
  }, [key]);
  const ready = base?.key === key ? base.view : null;
  const name = ready === null ? null : (choice.about ?? nameOf(ready));
  const moved = isMoved(choice) || choice.trial !== null;
  const body = JSON.stringify(movedBy(choice, name));
  useEffect(() => {
    if (ready === null || asked === null) return;
    if (!moved) {
      setProblem("");
      return;
    }
    latest.current.ask(async () => {
      try {
        const found = await api.whatif(policy, { ...asked, ...(JSON.parse(body) as object), scenarios: false });
        if (now.current !== key) return;
        setProblem("");
        setView({ key, view: found });
      } catch (error) {
        if (now.current === key) setProblem((error as Error).message);
      }
    });
  }, [key, ready, body, moved]);
  // What was answered last stays until the next answer, so that nothing flickers.
  const held = base?.view ?? null;
  if (ready === null) return { base: held, view: view !== null && view.key === base?.key ? view.view : held, problem, stale: true };
  return { base: ready, view: moved && view?.key === key ? view.view : ready, problem, stale: false };
}

// The other policy in the same situation, and what each says of the other's decision.
function useComparison(policy: string, policies: string[], choice: Choice, asked: WhatIf | null, view: View | null) {
  const [found, setFound] = useState<{ key: string; view: View; judged: View } | null>(null);
  const [error, setError] = useState("");
  const latest = useRef(new Latest());
  const versus = policies.find((name) => name === choice.versus && name !== policy) ?? null;
  const row = asked?.rows[0];
  const decision = view?.decision ?? null;
  const key = JSON.stringify([versus, asked, decision, choice.parameters, choice.factors, choice.risk]);
  useEffect(() => {
    if (versus === null || row === undefined || asked === null || decision === null) return;
    const moved = movedBy({ ...choice, trial: null }, null);
    latest.current.ask(async () => {
      try {
        const other = await api.whatif(versus, { ...asked, ...moved, trial: decision });
        const judged = await api.whatif(policy, { ...asked, ...moved, trial: other.decision ?? decision, scenarios: false });
        setError("");
        setFound({ key, view: other, judged });
      } catch (e) {
        setFound(null);
        setError(`${versus} cannot be compared here: ${(e as Error).message}`);
      }
    });
  }, [key]);
  if (versus === null) return { view: null, judged: null, error: "" };
  return { view: found?.view ?? null, judged: found?.judged ?? null, error };
}

