"""The page "Does it pay?", made from the rows of real cases: tables, sentences and pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import forewise as fw
from forewise_lab.experiments import Settings, load_settings
from forewise_lab.machine import write_whole
from forewise_lab.report.cases import CaseResult, MethodCosts, gather_cases
from forewise_lab.report.pay_figures import plot_answer, plot_case
from forewise_lab.report.rendering import markdown_table

_SAA = "real-saa"
#: Bayesian networks: what the paper is about.
BAYESIAN = (
    "real-default",
    "real-d-bnn",
    "real-bnn-ensemble",
    "real-c-bnn",
    "real-mixture",
    "real-d-bnn-each",
)
_PAIRS = (("real-c-bnn", "real-d-bnn"), ("real-c-ann", "real-d-ann"))
_POOLS = (
    ("real-d-bnn", "real-d-bnn-each"),
    ("real-boosting-residuals", "real-boosting-residuals-each"),
)
_DAYS = 365


def write_pay_page(
    folder: str | os.PathLike[str],
    page: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    remarks: str | os.PathLike[str] | None = None,
) -> Path:
    """Write the page, a Markdown file in a folder that exists, and its pictures beside it.

    `folder` has the results table; `remarks`, a Markdown file, becomes the last section. Raises an
    `InvalidInputError` if the folder has no rows of cases, or rows of a quick run.
    """
    place = Path(page)
    if not place.absolute().parent.is_dir():
        raise fw.exceptions.StorageError(
            f"page must be in a folder that exists, but is {str(place)!r}"
        )
    results = gather_cases(folder, settings or load_settings())
    head = (Path(__file__).parent / "templates/pay_head.md").read_text(encoding="utf-8")
    glance = "\n".join(f"- **{result.table.title}.** {verdict(result)}" for result in results)
    parts = [
        f"# Does it pay?\n\n{answer(results)}",
        _answer_picture(results, place.parent),
        head.format(folder=folder, tuning=results[0].table.tuning_days if results else 90),
        f"## At a glance\n\n{glance}\n",
        *(_section(result, place.parent) for result in results),
    ]
    parts += [part for part in (combined_table(results), pooling_table(results)) if part]
    if remarks is not None:
        try:
            parts.append(Path(remarks).read_text(encoding="utf-8").strip() + "\n")
        except (OSError, UnicodeDecodeError) as error:
            raise fw.exceptions.StorageError(
                f"cannot read remarks {str(remarks)!r}: {error}"
            ) from error
    try:
        write_whole(place, "\n".join(parts))
    except OSError as error:
        raise fw.exceptions.StorageError(
            f"cannot write {str(place)!r}: {error.strerror}"
        ) from error
    return place


def _section(result: CaseResult, folder: Path) -> str:
    parts = [f"## {result.table.title}", _periods(result)]
    if result.missing:
        text = "; ".join(result.missing)
        parts.append(f"**Not finished, and not in the table:** {text}.")
    if len(result.methods) > 1:
        parts.append(cost_table(result))
        if len(result.table.decision.levels) > 1:
            parts.append(level_table(result))
        picture = f"pay_{result.name.replace('-', '_')}.png"
        baselines = ranked(result, learners=False)
        if baselines:
            gaps = [(m, difference(result, m, baselines[0])) for m in ranked(result)]
            plot_case(result, gaps, baselines[0], folder / picture)
            text = f"Costs of {result.table.title} against {baselines[0].title}"
            parts.append(f"![{text}]({picture})")
        parts += [lower_bound(result), worth(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _periods(result: CaseResult) -> str:
    table = result.table
    text = f"Decided from {table.first_day} to {table.last_day}, refitted every {table.window}"
    text += f", M = {table.m} scenarios"
    if table.most_m is not None:
        text += f" and never more than {table.most_m}"
    if table.history_days is not None:
        text += f", trained on at most {table.history_days} days"
    if result.methods:
        n_series = result.methods[0].costs["series"].nunique()
        text += f"; {len(result.dates):,} decisions of {n_series} series"
    return text + "."


def difference(result: CaseResult, a: MethodCosts, b: MethodCosts) -> fw.metrics.Difference:
    """How much less (negative) or more a costs, as a share of b's cost."""
    cvar = result.table.decision.cvar
    return fw.metrics.block_bootstrap_difference(
        a.scored(cvar), b.scored(cvar), result.dates, relative=True, random_state=0
    )


def ranked(result: CaseResult, *, learners: bool | None = None) -> list[MethodCosts]:
    """Methods, cheapest first: all, only forewise's learners, or only baselines."""
    cvar = result.table.decision.cvar
    kept = [m for m in result.methods if learners is None or m.learner == learners]
    return sorted(kept, key=lambda method: float(method.scored(cvar).mean()))


def cost_table(result: CaseResult) -> str:
    """All methods with intervals, against the best baseline and against plain SAA."""
    baselines, cvar = ranked(result, learners=False), result.table.decision.cvar
    found = [*baselines[:1], result.method(_SAA)]
    # Plain SAA may be the best of them.
    others = list({other.title: other for other in found if other is not None}.values())
    figure = "cost" if cvar is None else f"CVaR {cvar:g} of the cost"
    against = [f"against {other.title}" for other in others]
    lines = []
    order = ranked(result)
    costs = [
        fw.metrics.block_bootstrap(m.scored(cvar), result.dates, random_state=0) for m in order
    ]
    least = f"{costs[0].estimate:.4g}"
    for method, cost in zip(order, costs, strict=True):
        mean = f"{cost.estimate:.4g}"
        cells = [method.title, f"**{mean}**" if mean == least else mean]
        cells.append(f"{cost.lower:.4g} to {cost.upper:.4g}")
        cells += [_share(result, method, other) for other in others]
        lines.append([*cells, f"{method.seconds:.3g} s", method.chosen])
    heads = ["method", figure, "95 % interval", *against, "one fit", "chosen"]
    return markdown_table(heads, lines)


def level_table(result: CaseResult) -> str:
    """Mean cost at each service level."""
    problems = [str(level) for level in result.methods[0].costs.columns[2:]]
    order = ranked(result)
    means = np.array([method.costs[problems].to_numpy().mean(axis=0) for method in order])
    best = [f"{least:.4g}" for least in means.min(axis=0)]
    lines = []
    for method, row in zip(order, means, strict=True):
        cells = zip((f"{mean:.4g}" for mean in row), best, strict=True)
        lines.append([method.title, *(f"**{t}**" if t == b else t for t, b in cells)])
    return markdown_table(["cost at service level", *problems], lines)


def lower_bound(result: CaseResult) -> str:
    """The cost of perfect foresight, and how much of the gap to it the best method closes."""
    if result.foresight is None:
        return ""
    cvar = result.table.decision.cvar
    floor = float(result.foresight.scored(cvar).mean())
    best = ranked(result)[0]
    above = float(best.scored(cvar).mean()) - floor
    text = (
        f"**Lower bound.** With perfect foresight the cost would still be {floor:.4g}: "
        f"{best.title} is {above:.4g} above that"
    )
    saa = result.method(_SAA)
    if saa is None or saa is best:
        return text + "."
    way = 1 - above / (float(saa.scored(cvar).mean()) - floor)
    return text + f", and closes {100 * way:.0f} % of the gap between {saa.title} and it."


def verdict(result: CaseResult) -> str:
    """The best learner against the best baseline, with intervals."""
    learners, baselines = ranked(result, learners=True), ranked(result, learners=False)
    if not learners or not baselines:
        total = len(result.methods) + len(result.missing)
        return f"Nothing to compare yet: {len(result.methods)} of {total} methods are finished."
    learner, baseline = learners[0], baselines[0]
    text = [
        f"Best learner: {learner.title}; best baseline: {baseline.title}. The learner costs "
        f"{in_words(difference(result, learner, baseline))}."
    ]
    saa = result.method(_SAA)
    if saa is not None:
        text.append(f"Against plain SAA: {in_words(difference(result, learner, saa))}.")
    bayesian = [method for method in ranked(result) if method.name in BAYESIAN]
    others = [method for method in ranked(result) if method.name not in BAYESIAN]
    if bayesian and others:
        gap = difference(result, bayesian[0], others[0])
        text.append(
            f"Bayesian networks {_standing(gap)}: against {others[0].title}, {bayesian[0].title} "
            f"costs {in_words(gap)}."
        )
    if result.missing:
        text.append(f"{len(result.missing)} method(s) are not finished.")
    return " ".join(text)


def answer(results: Sequence[CaseResult]) -> str:
    """The first words: what learners cost less than baselines, and what Bayesian ones add."""
    best = [gaps for result in results if (gaps := _best_against_baselines(result))]
    if not best:
        return "There is nothing to compare yet.\n"
    saa = [gap.estimate for gaps in best for method, gap in gaps if method.name == _SAA]
    rivals = [gaps[0][1] for gaps in best if gaps[0][0].name != _SAA]
    text = []
    if saa:
        text.append(
            f"**Against plain SAA, yes: the best learner costs {_range(saa)} less** in "
            f"{len(saa)} cases."
        )
    if rivals:
        text.append(
            f"Against the best baseline (forests, boosting, neighbours, tuned alike) it costs "
            f"{_range([gap.estimate for gap in rivals])} less in {len(rivals)} cases, "
            f"significantly so in {sum(gap.upper < 0 for gap in rivals)} of them."
        )
    standings = [gap for result in results if (gap := _bayesian_gap(result)) is not None]
    if standings:
        wins, losses = sum(g.upper < 0 for g in standings), sum(g.lower > 0 for g in standings)
        text.append(
            f"**Bayesian networks against the best method that is not one: {wins} won, {losses} "
            f"lost, {len(standings) - wins - losses} level.**"
        )
    return "\n\n".join(text) + "\n"


def _best_against_baselines(result: CaseResult) -> list[tuple[MethodCosts, fw.metrics.Difference]]:
    """The best learner's differences to the best baseline, and to plain SAA if it is another."""
    learners, baselines = ranked(result, learners=True), ranked(result, learners=False)
    if not learners or not baselines:
        return []
    saa = [method for method in baselines[1:] if method.name == _SAA]
    return [(b, difference(result, learners[0], b)) for b in [baselines[0], *saa]]


def _bayesian_gap(result: CaseResult) -> fw.metrics.Difference | None:
    bayesian = [method for method in ranked(result) if method.name in BAYESIAN]
    others = [method for method in ranked(result) if method.name not in BAYESIAN]
    return difference(result, bayesian[0], others[0]) if bayesian and others else None


def _answer_picture(results: Sequence[CaseResult], folder: Path) -> str:
    cases = [
        (result.table.title, ranked(result, learners=True)[0], gaps)
        for result in results
        if (gaps := _best_against_baselines(result))
    ]
    if not cases:
        return ""
    plot_answer(cases, folder / "pay.png")
    return "![The best learner against the best baseline and plain SAA](pay.png)\n"


def _range(shares: Sequence[float]) -> str:
    """What differences save: "1.3 to 5.0 %"."""
    ends = [f"{-100 * share:.1f}".replace("-", "−") for share in (max(shares), min(shares))]
    return f"{ends[0]} %" if len(shares) == 1 else f"{ends[0]} to {ends[1]} %"


def combined_table(results: Sequence[CaseResult]) -> str:
    """Combined against decoupled learning of the same network, in every case."""
    lines = []
    for result in results:
        pairs = [[result.method(name) for name in names] for names in _PAIRS]
        cells = [_share(result, a, b) for a, b in pairs]
        if cells != ["–"] * len(_PAIRS):
            lines.append([result.table.title, *cells])
    if not lines:
        return ""
    heads = ["case", "C-BNN against D-BNN", "C-ANN against D-ANN"]
    text = (
        "## Does combined learning win?\n\nThe paper expects it with few scenarios and with little "
        "data. Negative: combined costs less.\n\n"
    )
    return text + markdown_table(heads, lines) + "\n"


def pooling_table(results: Sequence[CaseResult]) -> str:
    """One model of all series against one for each."""
    lines = []
    for result in results:
        for names in _POOLS:
            a, b = (result.method(name) for name in names)
            if a is not None and b is not None:
                n_series = a.costs["series"].nunique()
                times = f"{a.seconds / (b.seconds / n_series):.1f}"
                lines.append([a.title, _share(result, a, b), f"{a.seconds:.3g} s",
                              f"{b.seconds:.3g} s", times])  # fmt: skip
    if not lines:
        return ""
    heads = ["pooled model", "cost against one per series", "one fit", "fits of all series",
             "pooled fit / one series' fit"]  # fmt: skip
    return "## One model for all series\n\n" + markdown_table(heads, lines) + "\n"


def worth(result: CaseResult) -> str:
    """What a percent of the cost is, in the case's own units."""
    best, decision = ranked(result)[0], result.table.decision
    mean = float(best.costs.iloc[:, 2:].to_numpy().mean())
    n_series = best.costs["series"].nunique()
    a_year = 0.01 * mean * len(best.costs) / (result.dates.nunique() / _DAYS)
    text = f"**What a percent is worth.** One percent of {best.title}'s cost is {0.01 * mean:.3g} "
    if decision.name == "newsvendor":
        return text + (
            f"per series and day, {a_year:,.0f} in a year for {n_series} series. A piece too few "
            f"and a piece too many cost 10 together, so that this is about {a_year / 5:,.0f} "
            "pieces a year that are over- or under-produced."
        )
    if decision.name == "oven":
        return text + (
            f"per store and day, {a_year:,.0f} in a year for {n_series} stores: as much as "
            f"{a_year / 3 / 100:,.1f} whole ovens of unmet demand."
        )
    return text + (
        f"a day, {a_year:,.2f} in a year. Costs are squared: imbalances that are half a percent "
        "smaller everywhere cost one percent less."
    )


def in_words(gap: fw.metrics.Difference) -> str:
    """How much less or more it costs, with the interval, and whether that is significant."""
    ends = f"[{_percent(gap.lower)}, {_percent(gap.upper)}]"
    size = round(abs(100 * gap.estimate), 1)
    if not size:
        return f"the same {ends}"
    way = "less" if gap.estimate < 0 else "more"
    note = "" if gap.significant else ", not significant"
    return f"{size:.1f} % {way} {ends}{note}"


def _share(result: CaseResult, a: MethodCosts | None, b: MethodCosts | None) -> str:
    if a is None or b is None or a is b:
        return "–"
    gap = difference(result, a, b)
    return f"{_percent(gap.estimate)} [{_percent(gap.lower)}, {_percent(gap.upper)}]"


def _percent(share: float) -> str:
    rounded = round(100 * share, 1)
    return f"{rounded:+.1f} %".replace("-", "−") if rounded else "0.0 %"


def _standing(gap: fw.metrics.Difference) -> str:
    if gap.upper < 0:
        return "win"
    return "lose" if gap.lower > 0 else "neither win nor lose"
