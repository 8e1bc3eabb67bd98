"""The results table as the report reads it: checked, one version of every fit, in table units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise_lab.experiments import COLUMNS, Settings, load_settings
from forewise_lab.experiments.rows import ERROR

#: Metrics that an experiment's scale applies to; the others have units of their own.
SCALED = frozenset({"R", "FR", "EFR", "FR32", "cost"})
_KEY = ["experiment", "method", "seed", "n_train", "m_train", "m", "metric"]
_LONGEST_REASON = 400  # characters


class At(NamedTuple):
    """A place in an experiment's grid."""

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
        """Experiments with values, in the order of the rows."""
        return list(dict.fromkeys(name for name, _, _ in self._values))

    def methods(self, experiment: str) -> list[str]:
        """The experiment's methods that have values: in the settings' order, then the rows'."""
        here = dict.fromkeys(method for name, method, _ in self._values if name == experiment)
        planned = self.settings.experiments[experiment].methods
        return [*(name for name in planned if name in here), *(n for n in here if n not in planned)]

    def is_planned(self, experiment: str, method: str) -> bool:
        return method in self.settings.experiments[experiment].methods

    def planned_seeds(self, experiment: str) -> tuple[int, ...]:
        """Seeds that every fit of an experiment should have."""
        return tuple(range(self.settings.experiments[experiment].n_seeds))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know of these rows before anything else."""
        notes = []
        if self.quick:
            notes = ["A quick run: tiny networks and few rows, so that its numbers mean nothing."]
        if self.left_out:
            kind = "full" if self.quick else "quick"
            notes.append(f"{self.left_out} rows of {kind} runs were left out.")
        return tuple(notes)

    def scale(self, experiment: str, metric: str) -> float:
        return self.settings.experiments[experiment].scale if metric in SCALED else 1.0

    def experiment_title(self, experiment: str) -> str:
        return self.settings.experiments[experiment].title

    def method_title(self, method: str) -> str:
        table = self.settings.methods.get(method)
        return method if table is None or table.title is None else table.title

    def values(self, experiment: str, method: str, metric: str, at: At) -> dict[int, float]:
        """From seed to value, in table units."""
        scale = self.scale(experiment, metric)
        found = self._values.get((experiment, method, metric), {}).get(at, {})
        return {seed: value * scale for seed, value in sorted(found.items())}

    def places(self, experiment: str, method: str, metric: str) -> list[At]:
        return sorted(self._values.get((experiment, method, metric), {}))

    def wanted_place(self, experiment: str, method: str) -> At | None:
        """Where the settings want a table's one value of a method; None for unknown methods."""
        if method not in self.settings.methods:
            return None
        return At(*self.settings.headline(experiment, method))

    def headline(self, experiment: str, method: str, metric: str) -> At | None:
        """Where a table's one value of a method stands: where the settings want it, or else at the
        most training rows and scenarios; None if there is none.
        """
        places = self.places(experiment, method, metric)
        wanted = self.wanted_place(experiment, method)
        if wanted in places:
            return wanted
        return max(places, key=lambda at: (at.n_train, at.m, at.m_train), default=None)

    @cached_property
    def _values(self) -> dict[tuple[str, str, str], dict[At, dict[int, float]]]:
        """All raw values by place and seed: tables ask for thousands of them."""
        found: dict[tuple[str, str, str], dict[At, dict[int, float]]] = {}
        columns = (self.rows[column].tolist() for column in [*_KEY, "value"])
        for experiment, method, seed, *sizes, metric, value in zip(*columns, strict=True):
            by_place = found.setdefault((experiment, method, metric), {})
            by_place.setdefault(At(*map(int, sizes)), {})[int(seed)] = float(value)
        return found


def gather(
    rows: pd.DataFrame | Results, settings: Settings | None = None, *, quick: bool = False
) -> Results:
    """Check a results table, from `read_rows`, and take what the report needs.

    With `quick`, take the rows of quick runs instead of those of full ones; all that is made of
    them says so. Experiments that the settings do not have are ignored. Raises an
    `InvalidInputError` if it is not such a table or has no value.
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
            f"rows must be a results table from read_rows, but has no column {', '.join(absent)}"
        )
    if rows.empty:
        raise InvalidInputError("rows must have at least one row, but is empty: run something")
    settings = load_settings() if settings is None else settings
    # Windows of real cases have no training size; another page is about them.
    known = rows["n_train"].notna() & rows["experiment"].isin(list(settings.experiments))
    table = rows[known].reindex(columns=list(COLUMNS))
    chosen = table[table["quick"].eq(True) == quick]
    if chosen.empty and not table.empty:
        have, want = ("full", "quick") if quick else ("quick", "full")
        raise InvalidInputError(f"rows must have some of a {want} run, but all are of {have} ones")
    current = _latest(chosen)
    value = pd.to_numeric(current["value"], errors="coerce").astype(float)
    usable = np.isfinite(value) & (current["metric"] != ERROR)
    if not usable.any():
        reasons = "; ".join(dict.fromkeys(current["note"].dropna().astype(str)))
        reason = f"every fit failed: {reasons}" if reasons else "there is none"
        raise InvalidInputError(f"rows must have at least one value, but {reason}")
    return Results(
        rows=current[usable].assign(value=value[usable]).reset_index(drop=True),
        settings=settings,
        failures=current[~usable].reset_index(drop=True),
        superseded=len(chosen) - len(current),
        quick=quick,
        left_out=len(table) - len(chosen),
    )


def _latest(table: pd.DataFrame) -> pd.DataFrame:
    """Of a method that was run with several settings, the rows of the one that finished last."""
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
    columns = (results.rows[column].tolist() for column in _KEY[:-2])
    there = set(zip(*columns, strict=True))
    found = []
    for name, table in results.settings.experiments.items():
        seeds = results.planned_seeds(name)
        sizes = [(n, m) for n in table.n_train for m in dict(table.scenarios)]
        lines: list[str] = []
        missing = 0
        for method in table.methods:
            absent = {
                size: lacking
                for size in sizes
                if (lacking := [s for s in seeds if (name, method, s, *size) not in there])
            }
            missing += sum(map(len, absent.values()))
            lines += _lines(results.method_title(method), len(seeds), len(sizes), absent)
        planned = len(table.methods) * len(sizes) * len(seeds)
        if missing:
            shown = ("nothing yet",) if missing == planned else tuple(lines)
            found.append(MissingFits(table.title, planned, planned - missing, shown))
    return tuple(found)


def failed_fits(results: Results) -> tuple[str, ...]:
    """What failed or gave no finite value, and why."""
    found: dict[str, None] = {}
    for row in results.failures.to_dict("records"):
        titles = results.experiment_title(row["experiment"]), results.method_title(row["method"])
        why = f"{row['metric']} at M = {row['m']} is not a finite number"
        if row["metric"] == ERROR:
            why = str(row["note"] or "no reason given")
        found[f"{', '.join(titles)}, seed {row['seed']}: {why[:_LONGEST_REASON]}"] = None
    return tuple(found)


def _lines(
    title: str, n_seeds: int, n_sizes: int, absent: dict[tuple[int, int], list[int]]
) -> list[str]:
    """One line per method where all its sizes lack the same seeds, otherwise one per size."""
    texts = {
        size: "all seeds"
        if len(seeds) == n_seeds
        else f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
        for size, seeds in absent.items()
    }
    if len(absent) == n_sizes and len(set(texts.values())) == 1:
        return [f"{title}: {next(iter(texts.values()))}"]
    return [f"{title}, {n} rows, M_train {m}: {text}" for (n, m), text in texts.items()]
