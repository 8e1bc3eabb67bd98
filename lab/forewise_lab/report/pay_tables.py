"""Tables and sentences of the page "Does it pay?".

May import: metrics, and its sibling `cases`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forewise.evaluation import Difference, block_bootstrap, block_bootstrap_difference
from forewise_lab.report.cases import CaseResult, MethodCosts

_SAA = "real-saa"
#: Networks whose weights are uncertain: what the paper is about.
BAYESIAN = (
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


def difference(result: CaseResult, a: MethodCosts, b: MethodCosts) -> Difference:
    """How much less (negative) or more a costs, as a share of b's cost."""
    cvar = result.table.decision.cvar
    return block_bootstrap_difference(
        a.judged(cvar), b.judged(cvar), result.dates, relative=True, random_state=0
    )


def ranked(result: CaseResult, *, learners: bool | None = None) -> list[MethodCosts]:
    """Methods, cheapest first: all, only forewise's learners, or only baselines."""
    cvar = result.table.decision.cvar
    kept = [m for m in result.methods if learners is None or m.learner == learners]
    return sorted(kept, key=lambda method: float(method.judged(cvar).mean()))


def cost_table(result: CaseResult) -> str:
    """All methods with intervals, against the best baseline and against plain SAA."""
    baselines, cvar = ranked(result, learners=False), result.table.decision.cvar
    found = [*baselines[:1], result.method(_SAA)]
    # Plain SAA may be the best of them.
    others = list({other.title: other for other in found if other is not None}.values())
    figure = "cost" if cvar is None else f"CVaR {cvar:g} of the cost"
    heads = ["method", figure, "95 % interval"]
    heads += [f"against {other.title}" for other in others]
    lines = []
    order = ranked(result)
    costs = [block_bootstrap(m.judged(cvar), result.dates, random_state=0) for m in order]
    least = f"{costs[0].estimate:.4g}"
    for method, cost in zip(order, costs, strict=True):
        mean = f"{cost.estimate:.4g}"
        cells = [method.title, f"**{mean}**" if mean == least else mean]
        cells.append(f"{cost.lower:.4g} to {cost.upper:.4g}")
        cells += [_share(result, method, other) for other in others]
        lines.append([*cells, f"{method.seconds:.3g} s", method.chosen])
    return markdown_table([*heads, "one fit", "chosen"], lines)


def level_table(result: CaseResult) -> str:
    """Mean cost at each service level."""
    problems = [str(level) for level in result.methods[0].costs.columns[2:]]
    order = ranked(result)
    means = np.array([method.costs[problems].to_numpy().mean(axis=0) for method in order])
    best = [f"{least:.4g}" for least in means.min(axis=0)]
    lines = []
    for method, row in zip(order, means, strict=True):
        told = [f"{mean:.4g}" for mean in row]
        cells = (f"**{t}**" if t == b else t for t, b in zip(told, best, strict=True))
        lines.append([method.title, *cells])
    return markdown_table(["cost at service level", *problems], lines)


def unavoidable(result: CaseResult) -> str:
    """What perfect foresight would cost, and how much of the way to it a method goes."""
    if result.foresight is None:
        return ""
    cvar = result.table.decision.cvar
    floor = float(result.foresight.judged(cvar).mean())
    best = ranked(result)[0]
    above = float(best.judged(cvar).mean()) - floor
    told = (
        f"**What no forecast can avoid.** Who knew what would come would still pay {floor:.4g}: "
        f"{best.title} is {above:.4g} above that"
    )
    saa = result.method(_SAA)
    if saa is None or saa is best:
        return told + "."
    way = 1 - above / (float(saa.judged(cvar).mean()) - floor)
    return told + f", and goes {100 * way:.0f} % of the way from {saa.title} to it."


def verdict(result: CaseResult) -> str:
    """Who has the lowest cost, and whether that can be told from the best of the others."""
    learners, baselines = ranked(result, learners=True), ranked(result, learners=False)
    if not learners or not baselines:
        total = len(result.methods) + len(result.missing)
        return f"Nothing to compare yet: {len(result.methods)} of {total} methods are finished."
    learner, baseline = learners[0], baselines[0]
    told = [
        f"Best learner: {learner.title}; best baseline: {baseline.title}. The learner costs "
        f"{in_words(difference(result, learner, baseline))}."
    ]
    saa = result.method(_SAA)
    if saa is not None:
        told.append(f"Against plain SAA: {in_words(difference(result, learner, saa))}.")
    bayesian = [method for method in ranked(result) if method.name in BAYESIAN]
    others = [method for method in ranked(result) if method.name not in BAYESIAN]
    if bayesian and others:
        gap = difference(result, bayesian[0], others[0])
        told.append(
            f"Bayesian networks {_standing(gap)}: against {others[0].title}, {bayesian[0].title} "
            f"costs {in_words(gap)}."
        )
    if result.missing:
        told.append(f"{len(result.missing)} method(s) are not finished.")
    return " ".join(told)


def combined_table(results: Sequence[CaseResult]) -> str:
    """Combined against decoupled learning of the same network, in every case."""
    lines = []
    for result in results:
        cells = [result.table.title]
        for names in _PAIRS:
            a, b = (result.method(name) for name in names)
            cells.append("–" if a is None or b is None else _share(result, a, b))
        if cells[1:] != ["–"] * len(_PAIRS):
            lines.append(cells)
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
    told = f"**What a percent is worth.** One percent of {best.title}'s cost is {0.01 * mean:.3g} "
    if decision.name == "newsvendor":
        return told + (
            f"per series and day, {a_year:,.0f} in a year for {n_series} series. A piece too few "
            f"and a piece too many cost 10 together, so that this is about {a_year / 5:,.0f} "
            "pieces a year that are baked for nobody, or missed."
        )
    if decision.name == "oven":
        return told + (
            f"per store and day, {a_year:,.0f} in a year for {n_series} stores: as much as "
            f"{a_year / 3 / 100:,.1f} whole ovens of bread that were asked for and not there."
        )
    return told + (
        f"a day, {a_year:,.2f} in a year. Costs are squared: one percent less is what imbalances "
        "have that are half a percent smaller everywhere."
    )


def markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in GitHub's Markdown; text to the left, the rest to the right."""
    rows = [heads, [":--", *["--:"] * (len(heads) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def in_words(gap: Difference) -> str:
    """How much less or more it costs, with the interval, and whether that is sure."""
    ends = f"[{_percent(gap.lower)}, {_percent(gap.upper)}]"
    size = round(abs(100 * gap.estimate), 1)
    if not size:
        return f"the same {ends}"
    way = "less" if gap.estimate < 0 else "more"
    sure = "" if gap.significant else ", which weeks alone could explain"
    return f"{size:.1f} % {way} {ends}{sure}"


def _share(result: CaseResult, a: MethodCosts, b: MethodCosts) -> str:
    if a is b:
        return "–"
    gap = difference(result, a, b)
    return f"{_percent(gap.estimate)} [{_percent(gap.lower)}, {_percent(gap.upper)}]"


def _percent(share: float) -> str:
    rounded = round(100 * share, 1)
    return f"{rounded:+.1f} %".replace("-", "−") if rounded else "0.0 %"


def _standing(gap: Difference) -> str:
    if gap.upper < 0:
        return "win"
    return "lose" if gap.lower > 0 else "neither win nor lose"
