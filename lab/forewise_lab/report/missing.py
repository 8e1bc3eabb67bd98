"""What is not there: fits that the settings plan and the rows lack, fits that failed.

May import: its sibling `results`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from forewise_lab.report.results import ERROR, Results

_ENOUGH = 400  # characters of a failure's reason


@dataclass(frozen=True)
class MissingFits:
    """Fits of one experiment that are not in the table.

    Attributes
    ----------
    experiment : str
        Its title.
    planned, found : int
        Fits that the settings plan, and how many of them have figures.
    lines : tuple of str
        Which are missing, in words.
    """

    experiment: str
    planned: int
    found: int
    lines: tuple[str, ...]


def missing_fits(results: Results) -> tuple[MissingFits, ...]:
    """Experiments that are not complete, in the settings' order."""
    rows = results.rows
    columns = (rows[c].tolist() for c in ("experiment", "method", "seed", "n_train", "m_train"))
    there = set(zip(*columns, strict=True))
    found = []
    for name, table in results.settings.experiments.items():
        m_trains = tuple(dict.fromkeys(pair[0] for pair in table.scenarios))
        expected = results.planned_seeds(name)
        lines: list[str] = []
        planned = missing = 0
        for method in table.methods:
            absent = {
                (n_train, m_train): [
                    seed for seed in expected if (name, method, seed, n_train, m_train) not in there
                ]
                for n_train in table.n_train
                for m_train in m_trains
            }
            planned += len(absent) * len(expected)
            missing += sum(len(seeds) for seeds in absent.values())
            lines += _lines(results.method_title(method), len(expected), absent)
        if missing == planned:
            lines = ["nothing yet"]
        if missing:
            title = results.experiment_title(name)
            found.append(MissingFits(title, planned, planned - missing, tuple(lines)))
    return tuple(found)


def failed_fits(results: Results) -> tuple[str, ...]:
    """What failed or gave no finite figure, and why."""
    told: dict[str, None] = {}
    for row in results.failures.to_dict("records"):
        where = (
            f"{results.experiment_title(row['experiment'])}, "
            f"{results.method_title(row['method'])}, seed {row['seed']}"
        )
        if row["metric"] == ERROR:
            why = str(row["note"] or "no reason given")
        else:
            why = f"{row['metric']} at M = {row['m']} is not a finite number"
        told[f"{where}: {why[:_ENOUGH]}"] = None
    return tuple(told)


def _lines(title: str, n_seeds: int, absent: dict[tuple[int, int], list[int]]) -> Iterable[str]:
    """One line per method where all its sizes lack the same seeds, otherwise one per size."""
    lacking = {place: seeds for place, seeds in absent.items() if seeds}
    if not lacking:
        return
    same = len({tuple(seeds) for seeds in lacking.values()}) == 1
    if same and len(lacking) == len(absent):
        yield f"{title}: {_seeds(next(iter(lacking.values())), n_seeds)}"
        return
    for (n_train, m_train), seeds in lacking.items():
        yield f"{title}, {n_train} rows, M_train {m_train}: {_seeds(seeds, n_seeds)}"


def _seeds(seeds: list[int], n_seeds: int) -> str:
    if len(seeds) == n_seeds:
        return "all seeds"
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
