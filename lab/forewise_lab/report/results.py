"""The results table as the report reads it: checked, one version of every fit, in table units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise_lab.experiments import COLUMNS, Settings, load_settings
from forewise_lab.experiments.work import ERROR

#: Metrics that an experiment's scale applies to; the others have units of their own.
SCALED = frozenset({"R", "FR", "EFR", "FR32", "cost"})

_KEY = ["experiment", "method", "seed", "n_train", "m_train", "m", "metric"]
_LONGEST_REASON = 400  # characters


@dataclass(frozen=True, order=True)
class At:
    """Where a figure stands in an experiment's grid."""

    n_train: int
    m_train: int
    m: int


@dataclass(frozen=True, eq=False)
class Results:
    """The values that the report is made from.

    `rows` are finite values, one version of each, raw; `failures` those of fits that failed and of
    values that are not finite. `superseded` rows, of fits that were run again with other settings,
    and those `left_out`, of the other kind (quick or full), are not used.
    """

    rows: pd.DataFrame
    settings: Settings
    failures: pd.DataFrame
    superseded: int
    quick: bool = False
    left_out: int = 0

    @property
    def experiments(self) -> list[str]:
        """Experiments with figures, in the order of the rows."""
        return list(dict.fromkeys(name for name, _, _ in self._figures))

    def methods(self, experiment: str) -> list[str]:
        """The experiment's methods that have figures: in the settings' order, then the rows'."""
        here = dict.fromkeys(method for name, method, _ in self._figures if name == experiment)
        listed = self.planned_methods(experiment)
        return [*(name for name in listed if name in here), *(n for n in here if n not in listed)]

    def planned_methods(self, experiment: str) -> tuple[str, ...]:
        """The methods that the settings name for an experiment."""
        table = self.settings.experiments.get(experiment)
        return () if table is None else table.methods

    def is_planned(self, experiment: str, method: str) -> bool:
        """Whether a missing figure is missed; all are in experiments that no settings know."""
        table = self.settings.experiments.get(experiment)
        return table is None or method in table.methods

    def planned_seeds(self, experiment: str) -> tuple[int, ...]:
        """Seeds that every fit of an experiment should have: those that its settings plan.

        In experiments that no settings know, all that any of its fits has.
        """
        table = self.settings.experiments.get(experiment)
        if table is not None:
            return tuple(range(table.n_seeds))
        here = self.rows.loc[self.rows["experiment"] == experiment, "seed"]
        return tuple(sorted(int(seed) for seed in here.unique()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know of these rows before anything else."""
        notes = []
        if self.quick:
            notes.append(
                "A quick run: tiny networks and few rows, so that its numbers mean nothing."
            )
        if self.left_out:
            kind = "full" if self.quick else "quick"
            notes.append(f"{self.left_out} rows of {kind} runs were left out.")
        return tuple(notes)

    def scale(self, experiment: str, metric: str) -> float:
        """What raw values are multiplied with in tables."""
        table = self.settings.experiments.get(experiment)
        return table.scale if table is not None and metric in SCALED else 1.0

    def experiment_title(self, experiment: str) -> str:
        """What people call the experiment."""
        table = self.settings.experiments.get(experiment)
        return experiment if table is None else table.title

    def method_title(self, method: str) -> str:
        """What people call the method."""
        table = self.settings.methods.get(method)
        return method if table is None or table.title is None else table.title

    def values(self, experiment: str, method: str, metric: str, at: At) -> dict[int, float]:
        """From seed to value, in table units."""
        scale = self.scale(experiment, metric)
        found = self._figures.get((experiment, method, metric), {}).get(at, {})
        return {seed: value * scale for seed, value in sorted(found.items())}

    def places(self, experiment: str, method: str, metric: str) -> list[At]:
        """Where a method has figures, in order of size."""
        return sorted(self._figures.get((experiment, method, metric), {}))

    @cached_property
    def _figures(self) -> dict[tuple[str, str, str], dict[At, dict[int, float]]]:
        """All raw values by place and seed: tables ask for thousands of them."""
        figures: dict[tuple[str, str, str], dict[At, dict[int, float]]] = {}
        columns = (self.rows[column].tolist() for column in [*_KEY, "value"])
        for experiment, method, seed, n_train, m_train, m, metric, value in zip(
            *columns, strict=True
        ):
            at = At(int(n_train), int(m_train), int(m))
            by_place = figures.setdefault((experiment, method, metric), {})
            by_place.setdefault(at, {})[int(seed)] = float(value)
        return figures

    def wanted_place(self, experiment: str, method: str) -> At | None:
        """Where the settings say that a table's one figure of a method stands."""
        if experiment not in self.settings.experiments or method not in self.settings.methods:
            return None
        return At(*self.settings.headline(experiment, method))

    def headline(self, experiment: str, method: str, metric: str) -> At | None:
        """Where a table's one figure of a method stands; None if there is none.

        What the settings say, or else (a run with settings of its own) the place with the most
        training rows and scenarios.
        """
        places = self.places(experiment, method, metric)
        wanted = self.wanted_place(experiment, method)
        if wanted in places:
            return wanted
        return max(places, key=lambda at: (at.n_train, at.m, at.m_train), default=None)


def gather(
    rows: pd.DataFrame | Results,
    settings: Settings | None = None,
    *,
    quick: bool = False,
) -> Results:
    """Check a results table, from `read_rows`, and take what the report needs.

    With `quick`, take the rows of quick runs instead of those of full ones; all that is made of
    them says so. Raises an `InvalidInputError` if it is not such a table or has no value.
    """
    if isinstance(rows, Results):
        return rows
    if not isinstance(rows, pd.DataFrame):
        raise InvalidInputError(
            f"rows must be a DataFrame from read_rows, but is a {type(rows).__name__}"
        )
    absent = [column for column in [*_KEY, "value"] if column not in rows.columns]
    if absent:
        raise InvalidInputError(
            f"rows must be a results table, but has no column {', '.join(absent)}: read it with "
            "read_rows"
        )
    if rows.empty:
        raise InvalidInputError(
            "rows must have at least one row, but is empty: run something first"
        )
    # Windows of real cases have no training size; another page is about them.
    table = rows[rows["n_train"].notna()].reindex(columns=list(COLUMNS))
    chosen = _of_kind(table, quick)
    left_out, table = len(table) - len(chosen), chosen
    current = _latest(table)
    value = pd.to_numeric(current["value"], errors="coerce").astype(float)
    usable = np.isfinite(value) & (current["metric"] != ERROR)
    if not usable.any():
        reasons = "; ".join(dict.fromkeys(current["note"].dropna().astype(str)))
        raise InvalidInputError(
            "rows must have at least one value, but every fit failed: "
            + (reasons or "no reason given")
        )
    return Results(
        rows=current[usable].assign(value=value[usable]).reset_index(drop=True),
        settings=load_settings() if settings is None else settings,
        failures=current[~usable].reset_index(drop=True),
        superseded=len(table) - len(current),
        quick=quick,
        left_out=left_out,
    )


def _of_kind(rows: pd.DataFrame, quick: bool) -> pd.DataFrame:
    """The rows of full runs, or those of quick ones; never both."""
    chosen = rows[rows["quick"].eq(True) == quick]
    if rows.empty or not chosen.empty:
        return chosen
    if quick:
        raise InvalidInputError("rows must have some of a quick run, but all are of full runs")
    raise InvalidInputError(
        "rows must have some of a full run, but all are of a quick one, whose numbers mean "
        "nothing: run the same without --quick, or ask for quick rows"
    )


def _latest(table: pd.DataFrame) -> pd.DataFrame:
    """Of a method that was run with several settings, the rows of the one that finished last.

    Means over seeds must not mix settings.
    """
    ordered = table.assign(
        config_hash=table["config_hash"].astype(object).fillna("").astype(str),
        finished_at=table["finished_at"].astype(object).fillna("").astype(str),
    ).sort_values("finished_at", kind="stable")
    last = ordered.groupby(["experiment", "method"])["config_hash"].transform("last")
    current = ordered[ordered["config_hash"] == last]
    return current.drop_duplicates(_KEY, keep="last").sort_index()


@dataclass(frozen=True)
class MissingFits:
    """Fits of one experiment that are not in the table.

    `experiment` is its title, `planned` and `found` count fits, `lines` name the missing ones.
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
    """What failed or gave no finite value, and why."""
    found: dict[str, None] = {}
    for row in results.failures.to_dict("records"):
        where = (
            f"{results.experiment_title(row['experiment'])}, "
            f"{results.method_title(row['method'])}, seed {row['seed']}"
        )
        if row["metric"] == ERROR:
            why = str(row["note"] or "no reason given")
        else:
            why = f"{row['metric']} at M = {row['m']} is not a finite number"
        found[f"{where}: {why[:_LONGEST_REASON]}"] = None
    return tuple(found)


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
