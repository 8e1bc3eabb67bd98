"""Tables, files and the plot of the SMPS bench."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from forewise_lab.bench.results import (
    ABSENT,
    LEGENDS,
    Bar,
    Measurement,
    Measurements,
    Page,
    Quantity,
    TextTable,
    at_least,
    at_most,
    bars_table,
    fitted_exponent,
    growth_table,
    seconds,
)
from forewise_lab.bench.smps.peers import FOREWISE, PEERS
from forewise_lab.bench.solver_report import LARGEST_EXPONENT, panels

#: What forewise is called in the rows of its growth.
GROWTH = "forewise alone"
_GROWTH_QUANTITIES = (Quantity.FORWARD, Quantity.PEAK, Quantity.ABOVE_BASELINE)
FAILED, LEFT_OUT = "failed", "left out"
#: From this many scenarios on, or with all there are, an instance counts in the bars.
COUNTED_FROM = 100
LEAST_MEAN, LEAST_RATIO = 5.0, 1.0
LARGE = ("ssn", 2000)
LONGEST_LARGE, LARGEST_PEAK_MIB = 60.0, 4096.0


def has_failed(row: Measurement) -> bool:
    """Whether a row's time is that of a wrong answer."""
    return FAILED in row.note


def smps_page(
    results: Measurements, missing: Sequence[str], machine: str, limit: float, turns: int
) -> Page:
    """The page of a run, complete or not."""
    bars = bars_table(bars_of(results), "The bars for programs in SMPS")
    alone = Measurements([row for row in results.rows if row.peer == GROWTH])
    sizes = {name: sorted({n for i, _, n in alone.cases() if i == name}) for name in alone.names()}
    series = {
        name: tuple(alone.series(name, GROWTH, quantity) for quantity in _GROWTH_QUANTITIES)
        for name in sizes
    }
    tables = [times_table(results), growth_table(series, sizes, "one solve"), bars]
    legend = LEGENDS["smps"].format(limit=limit, turns=turns)
    notes = {"✗ and not measured": [*failures(results), *missing]}
    return Page("forewise on classic stochastic programs", legend, tables, notes, machine)


def smps_figure(results: Measurements) -> Figure:
    """A panel for each instance that was solved at several sizes."""
    shown = solved(results)
    sizes = {name: {n for i, _, n in shown.cases() if i == name} for name in shown.names()}
    return panels(shown, {name: f"{name}: one solve" for name in sizes if len(sizes[name]) > 1})


def solved(results: Measurements) -> Measurements:
    """The times of right answers, without those of the growth."""
    return Measurements(
        [
            row
            for row in results.rows
            if row.quantity == Quantity.FORWARD and row.peer != GROWTH and not has_failed(row)
        ]
    )


def ratios(results: Measurements) -> dict[tuple[str, int], float]:
    """The fastest other solver's time over forewise's; 0 where forewise failed, inf where alone."""
    right, found = solved(results), {}
    for row in results.rows:
        case = (row.instance, row.n_scenarios)
        if row.peer != FOREWISE or case in found or row.quantity == Quantity.BUILD:
            continue
        times = {
            peer: right.median(*case, peer, Quantity.FORWARD) for peer in right.peers(row.instance)
        }
        ours = times.pop(FOREWISE, None)
        theirs = [value for value in times.values() if value is not None]
        found[case] = 0.0 if ours is None else min(theirs, default=math.inf) / ours
    return found


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers; 0 if one is, NaN if there are none."""
    if not values:
        return math.nan
    return math.exp(sum(map(math.log, values)) / len(values)) if min(values) > 0 else 0.0


def counted_ratios(results: Measurements) -> dict[tuple[str, int], float]:
    """The ratios of M ≥ 100, and of the largest M where an instance has no more."""
    found = ratios(results)
    largest = {name: max(size for other, size in found if other == name) for name, _ in found}
    return {
        (name, size): ratio
        for (name, size), ratio in found.items()
        if (size >= COUNTED_FROM or size == largest[name]) and ratio < math.inf
    }


def bars_of(results: Measurements) -> list[Bar]:
    """Every bar with what was measured."""
    found = counted_ratios(results)
    mean = geometric_mean(list(found.values()))
    worst = min(found, key=lambda case: found[case], default=None)
    what = f"faster than the fastest other, geometric mean of {len(found)} cases"
    bars = [at_least(what, LEAST_MEAN, None if math.isnan(mean) else 1.0, mean)]
    lowest = "" if worst is None else f" ({worst[0]}, M = {worst[1]})"
    theirs = None if worst is None else found[worst]
    bars.append(at_least(f"the same, the worst case{lowest}", LEAST_RATIO, 1.0, theirs))
    name, size = LARGE
    taken = results.median(name, size, GROWTH, Quantity.FORWARD)
    peak = results.median(name, size, GROWTH, Quantity.PEAK)
    bars.append(at_most(f"{name}, M = {size}: one solve", "60 s", LONGEST_LARGE, taken, "{:.1f} s"))
    bars.append(
        at_most(f"{name}, M = {size}: peak memory", "4 GB", LARGEST_PEAK_MIB, peak, "{:.0f} MiB")
    )
    for grown in Measurements([row for row in results.rows if row.peer == GROWTH]).names():
        for quantity, label in ((Quantity.FORWARD, "time"), (Quantity.ABOVE_BASELINE, "memory")):
            exponent = fitted_exponent(results.series(grown, GROWTH, quantity))
            what, bound = f"{grown}: exponent of {label} in M", LARGEST_EXPONENT
            bars.append(at_most(what, f"{bound:g}", bound, exponent, "{:.3f}"))
    return bars


def times_table(results: Measurements) -> TextTable:
    """A row for every instance and size, a column for every solver."""
    peers = [name for name in PEERS if any(row.peer == name for row in results.rows)]
    found, rows = ratios(results), []
    for (name, size), ratio in found.items():
        cells = [_cell(results, name, size, peer) for peer in peers]
        shown = ABSENT if math.isinf(ratio) else f"{ratio:.2f}×"
        rows.append((name, str(size), *cells, shown))
    for title, chosen in (("geometric mean", counted_ratios(results)), ("of all", found)):
        finite = [ratio for ratio in chosen.values() if ratio < math.inf]
        if finite:
            mean = f"{geometric_mean(finite):.2f}×"
            rows.append((title, str(len(finite)), *[""] * len(peers), mean))
    return TextTable("Seconds of one solve", ("instance", "M", *peers, "ratio"), rows)


def _cell(results: Measurements, name: str, size: int, peer: str) -> str:
    for row in results.rows:
        if (row.instance, row.n_scenarios, row.peer) == (name, size, peer):
            if row.quantity == Quantity.FORWARD:
                return seconds(row.median) + (" ✗" if has_failed(row) else "")
            if row.quantity == Quantity.SKIPPED:
                return "✗" if has_failed(row) and "took over" not in row.note else ">"
    return ABSENT


def failures(results: Measurements) -> list[str]:
    """A line for every answer that is wrong or not there."""
    return [
        f"{row.instance}, M = {row.n_scenarios}, {row.peer}: {row.note}"
        for row in results.rows
        if has_failed(row) or row.note.startswith(LEFT_OUT)
    ]
