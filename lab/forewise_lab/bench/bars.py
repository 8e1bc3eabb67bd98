"""What forewise has to reach against its peers, and whether it did.

May import: accuracy, growth, peers, plan, results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from forewise_lab.bench.accuracy import WANTED
from forewise_lab.bench.growth import between, fitted_exponent
from forewise_lab.bench.peers import ClarabelLoop, ForewisePeer, HighsLoop, MoreauBatch, QpthDense
from forewise_lab.bench.plan import GROWTH_SIZES
from forewise_lab.bench.results import ABOVE_BASELINE, BOTH, FORWARD, PEAK, Results

FOREWISE = ForewisePeer.name
LARGEST_EXPONENT = 1.05
LARGEST_PEAK_MIB = 2000.0


@dataclass(frozen=True)
class Bar:
    """One bar: `met` is None where it was not measured."""

    what: str
    wanted: str
    measured: str
    met: bool | None


@dataclass(frozen=True)
class Ratio:
    """forewise's forward and backward pass at least `times` faster than a peer's `quantity`."""

    family: str
    n_scenarios: int
    peer: str
    quantity: str
    times: float


RATIOS = (
    Ratio("nvqp", 64, ClarabelLoop.name, FORWARD, 20),
    Ratio("nvqp", 64, MoreauBatch.name, BOTH, 20),
    Ratio("nvqp", 32, QpthDense.name, BOTH, 1000),
    Ratio("pop", 64, HighsLoop.name, FORWARD, 5),
    Ratio("pop", 64, ClarabelLoop.name, FORWARD, 5),
    Ratio("pop", 64, MoreauBatch.name, BOTH, 5),
    Ratio("recourse", 128, ClarabelLoop.name, FORWARD, 3),
    Ratio("recourse", 128, MoreauBatch.name, BOTH, 5),
)


def judge(results: Results) -> list[Bar]:
    """Every bar with what was measured."""
    growth = [
        _exponent(results, family, quantity, what)
        for family in ("nvqp", "pop")
        for quantity, what in ((BOTH, "time"), (ABOVE_BASELINE, "peak memory"))
    ]
    ratios = [_ratio(results, ratio) for ratio in RATIOS]
    return [*ratios, *growth, _peak(results), _accuracy(results)]


def _ratio(results: Results, ratio: Ratio) -> Bar:
    case = (ratio.family, ratio.n_scenarios)
    ours = results.median(*case, FOREWISE, BOTH)
    theirs = results.median(*case, ratio.peer, ratio.quantity)
    named = "forward" if ratio.quantity == FORWARD else "forward + backward"
    what = f"{ratio.family}, M = {ratio.n_scenarios}: faster than {ratio.peer}, {named}"
    wanted = f"≥ {ratio.times:g}×"
    if ours is None or theirs is None:
        return Bar(what, wanted, "not measured", None)
    return Bar(what, wanted, f"{theirs / ours:.1f}×", theirs / ours >= ratio.times)


def _exponent(results: Results, family: str, quantity: str, what: str) -> Bar:
    values = between(results.series(family, FOREWISE, quantity), GROWTH_SIZES)
    exponent = fitted_exponent(values)
    label = f"{family}, M = {GROWTH_SIZES[0]} to {GROWTH_SIZES[-1]}: exponent of {what}"
    wanted = f"≤ {LARGEST_EXPONENT:g}"
    if math.isnan(exponent):
        return Bar(label, wanted, "not measured", None)
    return Bar(label, wanted, f"{exponent:.3f}", exponent <= LARGEST_EXPONENT)


def _peak(results: Results) -> Bar:
    size = GROWTH_SIZES[-1]
    peak = results.median("nvqp", size, FOREWISE, PEAK)
    what, wanted = f"nvqp, M = {size}: peak memory of the process", "< 2 GB"
    if peak is None:
        return Bar(what, wanted, "not measured", None)
    return Bar(what, wanted, f"{peak:.0f} MiB", peak * 1.024**2 < LARGEST_PEAK_MIB)


def _accuracy(results: Results) -> Bar:
    rows = (row for row in results.rows if row.peer == FOREWISE)
    errors = [row.relative_error for row in rows if row.relative_error is not None]
    compared = [error for error in errors if not math.isnan(error)]
    what, wanted = "forewise's largest relative error", f"≤ {WANTED:g}"
    if not compared:
        return Bar(what, wanted, "not measured", None)
    return Bar(what, wanted, f"{max(compared):.1e}", max(compared) <= WANTED)
