"""The page "Does it pay?", made from the rows of real cases: tables, sentences and pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import forewise as fw
from forewise_lab.experiments.configuration import Settings, load_settings
from forewise_lab.experiments.rows import storage_errors
from forewise_lab.machine import write_whole
from forewise_lab.report.cases import CaseResult, MethodCosts, gather_cases
from forewise_lab.report.pay_figures import plot_answer, plot_case
from forewise_lab.report.rendering import markdown_table

_TEMPLATES = Path(__file__).parent / "templates"
_SAA = "real-saa"
#: Bayesian networks: what the paper is about.
BAYESIAN = ("real-default", "real-d-bnn", "real-bnn-ensemble", "real-c-bnn", "real-mixture",
            "real-d-bnn-each")  # fmt: skip
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
    head = (_TEMPLATES / "pay_head.md").read_text(encoding="utf-8")
    glance = "\n".join(f"- **{result.table.title}.** {verdict(result)}" for result in results)
    compared = [(r, ranked(r, learners=True)[0], g) for r in results if (g := _best_gaps(r))]
    picture = "![The best learner against the best baseline and plain SAA](pay.png)\n"
    if compared:
        plot_answer([(r.table.title, best, g) for r, best, g in compared], place.parent / "pay.png")
    parts = [
        f"# Does it pay?\n\n{answer(results)}",
        picture if compared else "",
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
    with storage_errors("write to", place.parent):
        write_whole(place, "\n".join(parts))
    return place


def _section(result: CaseResult, folder: Path) -> str:
    parts = []
    if len(result.methods) > 1:
        parts.append(cost_table(result))
        if len(result.table.decision.levels) > 1:
            parts.append(level_table(result))
        for baseline in ranked(result, learners=False)[:1]:
            gaps = [(m, difference(result, m, baseline)) for m in ranked(result)]
            picture = f"pay_{result.name.replace('-', '_')}.png"
            plot_case(result, gaps, baseline, folder / picture)
            text = f"Costs of {result.table.title} against {baseline.title}"
            parts.append(f"![{text}]({picture})")
        parts += [lower_bound(result), worth(result)]
    return _sentence("section", result, parts)


def _sentence(name: str, *arguments: Any) -> str:
    """A text of ``pay.md.j2``, filled in."""
    return str(getattr(_TEXTS, name)(*arguments))


def difference(result: CaseResult, a: MethodCosts, b: MethodCosts) -> fw.metrics.Difference:
    """How much less (negative) or more a costs, as a share of b's cost."""
    cvar = result.table.decision.cvar
    return fw.metrics.block_bootstrap_difference(
        a.scored(cvar), b.scored(cvar), result.dates, relative=True, random_state=0
    )


def ranked(result: CaseResult, *, learners: bool | None = None) -> list[MethodCosts]:
    """Methods, cheapest first: all, only forewise's learners, or only baselines."""
    kept = [m for m in result.methods if learners is None or m.learner == learners]
    return sorted(kept, key=lambda method: _mean(result, method))


def _mean(result: CaseResult, method: MethodCosts) -> float:
    return float(method.scored(result.table.decision.cvar).mean())


def _rivals(result: CaseResult) -> tuple[MethodCosts | None, MethodCosts | None]:
    """The best Bayesian network, and the best method that is none."""
    best: dict[bool, MethodCosts] = {}
    for method in ranked(result):
        best.setdefault(method.name in BAYESIAN, method)
    return best.get(True), best.get(False)


def cost_table(result: CaseResult) -> str:
    """All methods with intervals, against the best baseline and against plain SAA."""
    baselines, cvar = ranked(result, learners=False), result.table.decision.cvar
    found = [*baselines[:1], result.method(_SAA)]
    # Plain SAA may be the best of them.
    others = list({other.title: other for other in found if other is not None}.values())
    figure = "cost" if cvar is None else f"CVaR {cvar:g} of the cost"
    lines = []
    least = f"{_mean(result, ranked(result)[0]):.4g}"
    for method in ranked(result):
        cost = fw.metrics.block_bootstrap(method.scored(cvar), result.dates, random_state=0)
        mean = f"{cost.estimate:.4g}"
        cells = [method.title, f"**{mean}**" if mean == least else mean]
        cells.append(f"{cost.lower:.4g} to {cost.upper:.4g}")
        cells += [_share(result, method, other) for other in others]
        lines.append([*cells, f"{method.seconds:.3g} s", method.chosen])
    against = [f"against {other.title}" for other in others]
    heads = ["method", figure, "95 % interval", *against, "one fit", "chosen"]
    return markdown_table(heads, lines)


def level_table(result: CaseResult) -> str:
    """Mean cost at each service level."""
    problems = [str(level) for level in result.methods[0].costs.columns[2:]]
    means = {method.title: method.costs[problems].mean() for method in ranked(result)}
    text = pd.DataFrame(means).map("{:.4g}".format)
    best = pd.DataFrame(means).min(axis=1).map("{:.4g}".format)
    text = text.where(text.ne(best, axis=0), "**" + text + "**")
    lines = [[title, *text[title]] for title in text]
    return markdown_table(["cost at service level", *problems], lines)


def lower_bound(result: CaseResult) -> str:
    """The cost of perfect foresight, and how much of the gap to it the best method closes."""
    if result.foresight is None:
        return ""
    floor, best, saa = _mean(result, result.foresight), ranked(result)[0], result.method(_SAA)
    above = _mean(result, best) - floor
    closed = None if saa is None or saa is best else 1 - above / (_mean(result, saa) - floor)
    return _sentence("lower_bound", floor, best, above, saa, closed)


def verdict(result: CaseResult) -> str:
    """The best learner against the best baseline, with intervals."""
    best = [next(iter(ranked(result, learners=kind)), None) for kind in (True, False)]
    return _sentence("verdict", result, *best, result.method(_SAA), *_rivals(result))


def answer(results: Sequence[CaseResult]) -> str:
    """The first words: what learners cost less than baselines, and what Bayesian ones add."""
    best = [gaps for result in results if (gaps := _best_gaps(result))]
    saa = [gap for gaps in best for method, gap in gaps if method.name == _SAA]
    rivals = [gaps[0][1] for gaps in best if gaps[0][0].name != _SAA]
    pairs = [(result, *_rivals(result)) for result in results]
    standings = [difference(result, a, b) for result, a, b in pairs if a and b]
    wins, losses = sum(g.upper < 0 for g in standings), sum(g.lower > 0 for g in standings)
    return _sentence("answer", saa, rivals, wins, losses, len(standings) - wins - losses)


def _best_gaps(result: CaseResult) -> list[tuple[MethodCosts, fw.metrics.Difference]]:
    """The best learner's differences to the best baseline, and to plain SAA if it is another."""
    learners, baselines = ranked(result, learners=True), ranked(result, learners=False)
    if not learners or not baselines:
        return []
    saa = [method for method in baselines[1:] if method.name == _SAA]
    return [(b, difference(result, learners[0], b)) for b in [baselines[0], *saa]]


def saved(gaps: Sequence[fw.metrics.Difference]) -> str:
    """What differences save: "1.3 to 5.0 %"."""
    shares = [gap.estimate for gap in gaps]
    ends = [f"{-100 * share:.1f}".replace("-", "−") for share in (max(shares), min(shares))]
    return f"{ends[0]} %" if len(shares) == 1 else f"{ends[0]} to {ends[1]} %"


def combined_table(results: Sequence[CaseResult]) -> str:
    """Combined against decoupled learning of the same network, in every case."""
    lines = []
    for result in results:
        cells = [_share(result, *map(result.method, names)) for names in _PAIRS]
        if cells != ["–"] * len(_PAIRS):
            lines.append([result.table.title, *cells])
    if not lines:
        return ""
    heads = ["case", "C-BNN against D-BNN", "C-ANN against D-ANN"]
    return _sentence("combined") + markdown_table(heads, lines) + "\n"


def pooling_table(results: Sequence[CaseResult]) -> str:
    """One model of all series against one for each."""
    lines = []
    for result in results:
        for names in _POOLS:
            a, b = map(result.method, names)
            if a is not None and b is not None:
                times = a.seconds / (b.seconds / a.costs["series"].nunique())
                seconds = [f"{a.seconds:.3g} s", f"{b.seconds:.3g} s", f"{times:.1f}"]
                lines.append([a.title, _share(result, a, b), *seconds])
    if not lines:
        return ""
    heads = ["pooled model", "cost against one per series", "one fit", "fits of all series",
             "pooled fit / one series' fit"]  # fmt: skip
    return "## One model for all series\n\n" + markdown_table(heads, lines) + "\n"


def worth(result: CaseResult) -> str:
    """What a percent of the cost is, in the case's own units."""
    best, kind = ranked(result)[0], result.table.decision.name
    percent = 0.01 * float(best.costs.iloc[:, 2:].to_numpy().mean())
    a_year = percent * len(best.costs) / (result.dates.nunique() / _DAYS)
    return _sentence("worth", best, kind, percent, a_year, best.costs["series"].nunique())


def in_words(gap: fw.metrics.Difference) -> str:
    """How much less or more it costs, with the interval, and whether that is significant."""
    ends = f"[{_percent(gap.lower)}, {_percent(gap.upper)}]"
    size = round(abs(100 * gap.estimate), 1)
    if not size:
        return f"the same {ends}"
    way = "less" if gap.estimate < 0 else "more"
    return f"{size:.1f} % {way} {ends}{'' if gap.significant else ', not significant'}"


def _share(result: CaseResult, a: MethodCosts | None, b: MethodCosts | None) -> str:
    if a is None or b is None or a is b:
        return "–"
    gap = difference(result, a, b)
    return f"{_percent(gap.estimate)} [{_percent(gap.lower)}, {_percent(gap.upper)}]"


def _percent(share: float) -> str:
    rounded = round(100 * share, 1)
    return f"{rounded:+.1f} %".replace("-", "−") if rounded else "0.0 %"


_TEXTS = Environment(loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined).get_template(
    "pay.md.j2", globals={"difference": difference, "in_words": in_words, "saved": saved}
).module  # fmt: skip
