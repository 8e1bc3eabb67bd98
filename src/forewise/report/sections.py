"""The parts of a page, in the order in which they are read: the answer first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from forewise.display import counted, rounded
from forewise.figures import CoverageDisplay, DecisionDisplay, LeaderboardDisplay
from forewise.report.inputs import Content
from forewise.report.pictures import picture

_ROWS, _WORST = 60, 10  # of tables
_SERIES, _DAYS = 3, 90  # whose decisions are drawn, and how many days


class Column(NamedTuple):
    """A column of a table: its title, its cells, not escaped yet, and how they stand."""

    title: str
    cells: Sequence[str]
    kind: str = ""  # "day", "number", "main", "more" (left out on phones), or several of them


def answer(content: Content) -> str:
    """What it saves, and how sure that is."""
    found = content.evaluation
    if found is None:
        verdict = content.policy.card.verdict
        text = verdict or "Nothing is known of what its decisions cost: there was no comparison."
        return _card(
            "Not evaluated yet",
            f"<p>{escape(text)}</p><p class=quiet>An evaluation on past days, each decided with "
            "what was known before it, says what the decisions save.</p>",
            "answer",
        )
    saved = found.saving
    share = math.isfinite(saved["share"])
    value, low, high = (
        saved[name] for name in (("share", "share_lower", "share_upper") if share else
                                 ("estimate", "lower", "upper"))
    )  # fmt: skip

    def shown(number: float) -> str:
        return _percent(number) if share else rounded(number)

    against = _baseline(found.baseline)
    if low > 0:
        look, big = "good", f"Saves {shown(value)}"
        text = f"of the cost, compared with {against}. It is likely between {shown(low)} and "
        text += f"{shown(high)}."
    elif high < 0:
        look, big = "bad", f"Costs {shown(-value)} more"
        text = f"than {against}. It is likely between {shown(-high)} and {shown(-low)} more."
    else:
        look, big = "open", "No clear difference"
        text = (
            f"to {against}: between {shown(low)} and {shown(high)} saved, so that the difference "
            "may be chance. The simpler way is as good until more days have been seen."
        )
    rows = found.summary
    cells = [
        ("cost of a decision", rounded(float(rows.loc[content.method, "cost"]))),
        (f"with {against}", rounded(float(rows.loc[found.baseline, "cost"]))),
        ("saved in a decision", rounded(saved["estimate"])),
        (f"saved in {counted(len(found.costs), 'decision')}", rounded(saved["total"])),
    ]
    figures = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in cells)
    notes = "".join(f'<p class="quiet">{escape(note)}.</p>' for note in found.notes)
    return _card(
        "What it saves",
        f'<p class="big {look}">{escape(big)}</p><p>{escape(text)}</p>{notes}'
        f'<dl class="figures">{figures}</dl>',
        "answer",
    )


def decisions(content: Content) -> str:
    """What is to be done next."""
    made = content.decisions
    if made is None:
        return _card(
            "Next decisions",
            "<p>No days to come were passed. Add them, with all columns that are known ahead, to "
            "see what to decide for them.</p>",
        )
    date = content.policy.roles.date
    days = pd.to_datetime(made[date]) if date in made else pd.Series(dtype="datetime64[s]")
    when = ""
    if len(days):
        first, last = _day(days.min()), _day(days.max())
        when = f" for {first}" if first == last else f" for {first} to {last}"
    shown = made.head(_ROWS)
    columns = []
    if days.nunique() > 1:  # a single one is in the title
        columns.append(Column("day", [_day(day) for day in days.head(_ROWS)], "day"))
    columns += [Column(name, _texts(shown[name])) for name in content.policy.roles.series]
    names = [name for name in content.policy.decision_names if name in made]
    columns += [Column(_plain(name), _numbers(shown[name]), "number main") for name in names]
    if "expected_cost" in made:
        columns.append(Column("expected cost", _numbers(shown["expected_cost"]), "number more"))
    if {"cost_lower", "cost_upper"} <= set(made):
        ends = zip(shown["cost_lower"], shown["cost_upper"], strict=True)
        cells = ["" if pd.isna(a) else f"{rounded(a)} to {rounded(b)}" for a, b in ends]
        columns.append(Column("likely cost", cells, "number"))
    if "monte_carlo_error" in made:
        columns.append(Column("± by chance", _numbers(shown["monte_carlo_error"]), "number more"))
    if "note" in made and (made["note"].astype(str) != "").any():
        columns.append(Column("note", _texts(shown["note"]), "more"))
    below = ""
    if len(made) > _ROWS:
        below = f'<p class="quiet">The first {_ROWS} of {len(made):,} decisions.</p>'
    if "cost_lower" in made:
        held = "" if content.evaluation is None else content.evaluation.interval_text
        text = f"The likely cost is an interval made to hold 90 % of the costs. {held}".strip()
        below += f'<p class="quiet">{escape(text)}</p>'
    if content.explanation is not None:
        below += f"<details><summary>Why the first of them</summary>{content.explanation.html()}"
        below += "</details>"
    return _card(f"Next decisions{when}", table(columns) + below)


def comparison(content: Content) -> str:
    """Methods beside each other, on the same days."""
    found = content.evaluation
    parts = []
    if found is not None:
        shown = LeaderboardDisplay.from_leaderboard(found.summary, chosen=content.method)
        rows = found.summary
        parts.append(
            "<p>Every day was decided with what was known before it.</p>"
            + picture(shown, "mean cost of a decision by method", 0.9 + 0.45 * len(rows))
        )
        saved = [-float(v) for v in rows["relative"]]
        columns = [
            Column("method", [str(name) for name in rows.index]),
            Column("cost of a decision", _numbers(rows["cost"]), "number"),
            Column(
                f"saved, against {_baseline(found.baseline)}",
                ["" if name == found.baseline else _percent(v)
                 for name, v in zip(rows.index, saved, strict=True)],
                "number",
            ),
        ]  # fmt: skip
        parts.append(table(columns))
    board = pd.DataFrame(content.policy.card.leaderboard)
    if len(board) and {"method", "cost", "lower", "upper"} <= set(board):
        verdict = content.policy.card.verdict
        inner = f"<p>{escape(verdict)}</p>" if verdict else ""
        tried = LeaderboardDisplay.from_leaderboard(board)
        if tried.methods:
            inner += picture(tried, "mean cost by method tried", 0.9 + 0.34 * len(tried.methods))
        opened = " open" if found is None else ""
        parts.append(
            f"<details{opened}><summary>The methods that were tried</summary>{inner}</details>"
        )
    return _card("Comparison", "".join(parts)) if parts else ""


def calibration(content: Content) -> str:
    """Whether costs stay in their intervals as often as these say."""
    if content.evaluation is None:
        return ""
    months = content.evaluation.coverage
    if not len(months) or not months["n_rows"].sum():
        return ""
    weights = months["n_rows"].to_numpy(dtype=float)
    covered = months["covered"].to_numpy(dtype=float)
    text = (
        f"{content.evaluation.interval_text} The band has nine of ten months if intervals are "
        "right and days independent; where days are alike, months stray further."
    )
    display = CoverageDisplay([str(m) for m in months.index], covered, weights.astype(int), 0.9)
    return _card(
        "Can the intervals be trusted?",
        f"<p>{escape(text)}</p>" + picture(display, "share of costs within their interval", 2.6),
    )


def over_time(content: Content) -> str:
    """Decisions beside outcomes, of the series that cost most."""
    found, pairs = content.evaluation, content.pairs
    if found is None or content.outcome is None or "date" not in found.costs or not pairs:
        return ""
    series = content.series_of
    weight = found.costs[content.method_cost].groupby(series.to_numpy()).sum()
    chosen = weight.sort_values(ascending=False, kind="stable").index[:_SERIES]
    decision, outcome = pairs[0]
    parts = []
    for name in chosen:
        own = found.costs[series.to_numpy() == name].sort_values("date").tail(_DAYS)
        display = DecisionDisplay(
            own["date"].to_numpy().astype("datetime64[D]"),
            own[decision].to_numpy(dtype=float),
            content.outcome.loc[own.index, outcome].to_numpy(),
            at_least=own["sold_out"].to_numpy(dtype=bool),
            names=(_plain(decision), outcome),
        )
        heading = f"<h3>{escape(name)}</h3>" if name else ""
        parts.append(heading + picture(display, f"decisions and outcomes, {name}", 2.7))
    left = len(weight) - len(chosen)
    more = f'<p class="quiet">The {_SERIES} series that cost most, of {len(weight)}.</p>'
    return _card("Decisions over time", "".join(parts) + (more if left > 0 else ""))


def worst_days(content: Content) -> str:
    """The decisions that cost most."""
    found = content.evaluation
    if found is None or content.outcome is None or not len(found.costs):
        return ""
    worst = found.costs.sort_values(content.method_cost, ascending=False, kind="stable")
    worst = worst[worst[content.method_cost].notna()].head(_WORST)
    columns = []
    if "date" in worst:
        columns.append(Column("day", [_day(day) for day in worst["date"]], "day"))
    if content.policy.roles.series:
        title = " · ".join(content.policy.roles.series)
        columns.append(Column(title, content.series_of.loc[worst.index].tolist()))
    columns += [
        Column(_plain(name), _numbers(worst[name]), "number")
        for name in content.policy.decision_names[:3]
    ]
    for name in list(content.outcome)[:3]:
        seen = _numbers(content.outcome.loc[worst.index, name])
        bound = [f"≥ {v}" if out else v for v, out in zip(seen, worst["sold_out"], strict=True)]
        columns.append(Column(str(name), bound, "number"))
    columns.append(Column("cost", _numbers(worst[content.method_cost]), "number main"))
    baseline = f"cost_{found.baseline}"
    if baseline in worst:
        title = f"with {_baseline(found.baseline)}"
        columns.append(Column(title, _numbers(worst[baseline]), "number more"))
    total = float(found.costs[content.method_cost].sum())
    share = float(worst[content.method_cost].sum()) / total if total > 0 else math.nan
    text = f"These {len(worst)} of {len(found.costs):,} decisions cost {_percent(share)} of all."
    below = f'<p class="quiet">{escape(text)}</p>' if math.isfinite(share) else ""
    return _card("Worst days", table(columns) + below)


def learned_from(content: Content) -> str:
    """What was read, and what was made of it."""
    card = content.policy.card
    span = f", from {card.first} to {card.last}" if card.first else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in card.notes)
    parts = [
        f"<p>{escape(counted(card.n_rows, 'row'))}{escape(span)}.</p>",
        f"<ul>{notes}</ul>" if notes else "",
    ]
    columns = [Column(str(name), [str(v) for v in cells]) for name, cells in card.columns.items()]
    if columns and columns[0].cells:
        parts.append(
            f"<details><summary>What was made of each column</summary>{table(columns)}</details>"
        )
    parts.append(f'<p class="quiet">Problem: {escape(repr(content.policy.problem))}</p>')
    return _card("What it was learned from", "".join(parts))


def table(columns: Iterable[Column]) -> str:
    """A table that scrolls where it is too wide; everything is escaped."""
    columns = list(columns)
    head = "".join(_cell("th", column.kind, column.title) for column in columns)
    cells = zip(*(column.cells for column in columns), strict=True)
    body = "".join(
        "<tr>"
        + "".join(_cell("td", c.kind, text) for c, text in zip(columns, row, strict=True))
        + "</tr>"
        for row in cells
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _cell(tag: str, kind: str, text: str) -> str:
    return (
        f'<{tag} class="{kind}">{escape(text)}</{tag}>'
        if kind
        else f"<{tag}>{escape(text)}</{tag}>"
    )


def _card(title: str, inner: str, kind: str = "") -> str:
    names = f"card {kind}".strip()
    return f'<section class="{names}"><h2>{escape(title)}</h2>{inner}</section>'


def _baseline(name: str) -> str:
    """What an evaluation's baseline is called in sentences."""
    return {"today": "what was decided until now", "SAA": "the best constant decision"}.get(
        name, name
    )


def _plain(name: str) -> str:
    """A decision's column without its prefix."""
    return name.removeprefix("decision_") or name


def _percent(share: float) -> str:
    size = 0 if abs(share) >= 0.0995 else 1
    return f"{100 * share:.{size}f}\N{NO-BREAK SPACE}%".replace("-", "−")


def _day(day: Any) -> str:
    moment = pd.Timestamp(day)
    return "" if pd.isna(moment) else f"{moment:%a %Y-%m-%d}"


def _numbers(values: Any) -> list[str]:
    numbers = np.asarray(values, dtype=float)
    return ["" if np.isnan(v) else rounded(float(v)) for v in numbers]


def _texts(values: pd.Series) -> list[str]:
    return ["" if pd.isna(v) else str(v) for v in values]
