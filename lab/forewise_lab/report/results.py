"""The results table as the report reads it: checked, one version of every fit, in table units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

import forewise as fw
from forewise_lab.experiments.configuration import ExperimentTable, Settings, load_settings
from forewise_lab.experiments.rows import COLUMNS, ERROR

#: Metrics that an experiment's scale applies to; the others have units of their own.
SCALED = frozenset({"R", "FR", "EFR", "FR32", "cost"})
_FIT = ["experiment", "method", "seed", "n_train", "m_train"]
_KEY = [*_FIT, "m", "metric"]
_NAMES = ["experiment", "method", "metric"]
_LONGEST_REASON = 400  # characters


class At(NamedTuple):
    """A place in an experiment's grid."""

    n_train: int
    m_train: int
    m: int


@dataclass(frozen=True, eq=False)
class Results:
    """The values that the report is made from.

    `rows` are finite values, one version of each, in the units of the tables; `failures` those of
    fits that failed and of values that are not finite. Not used are `superseded` rows, of fits that
    were run again with other settings, and those `left_out`, of the other kind (quick or full).
    """

    rows: pd.DataFrame
    settings: Settings
    failures: pd.DataFrame
    superseded: int
    quick: bool = False
    left_out: int = 0

    @cached_property
    def experiments(self) -> dict[str, ExperimentTable]:
        """Experiments with values, in the order of the rows, and their settings."""
        return {name: self.settings.experiments[name] for name in self.rows["experiment"].unique()}

    def methods(self, experiment: str) -> list[str]:
        """The experiment's methods that have values: in the settings' order, then the rows'."""
        here = dict.fromkeys(method for name, method, _ in self._values if name == experiment)
        planned = self.settings.experiments[experiment].methods
        return [*(name for name in planned if name in here), *(n for n in here if n not in planned)]

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

    def method_title(self, method: str) -> str:
        table = self.settings.methods.get(method)
        return method if table is None or table.title is None else table.title

    def values(self, experiment: str, method: str, metric: str, at: At | None) -> dict[int, float]:
        """From seed to value."""
        found = self._values.get((experiment, method, metric), {})
        return {} if at is None else dict(sorted(found.get(at, {}).items()))

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
        """All values by place and seed: tables ask for thousands of them."""
        found: dict[tuple[str, str, str], dict[At, dict[int, float]]] = {}
        for *key, seed, value in self.rows[[*_NAMES, *At._fields, "seed", "value"]].itertuples(
            index=False, name=None
        ):
            by_place = found.setdefault(tuple(key[:3]), {})
            by_place.setdefault(At(*map(int, key[3:])), {})[int(seed)] = value
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
        raise fw.InvalidInputError(
            f"rows must be a DataFrame from read_rows, but is a {type(rows).__name__}"
        )
    absent = [column for column in [*_KEY, "value"] if column not in rows.columns]
    if absent:
        raise fw.InvalidInputError(
            f"rows must be a results table from read_rows, but has no column {', '.join(absent)}"
        )
    if rows.empty:
        raise fw.InvalidInputError("rows must have at least one row, but is empty: run something")
    settings = load_settings() if settings is None else settings
    # Windows of real cases have no training size; another page is about them.
    known = rows["n_train"].notna() & rows["experiment"].isin(list(settings.experiments))
    table = rows[known].reindex(columns=list(COLUMNS))
    chosen = table[table["quick"].eq(True) == quick]
    if chosen.empty and not table.empty:
        have, want = ("full", "quick") if quick else ("quick", "full")
        raise fw.InvalidInputError(
            f"rows must have some of a {want} run, but all are of {have} ones"
        )
    current = _latest(chosen)
    value = pd.to_numeric(current["value"], errors="coerce").astype(float)
    usable = np.isfinite(value) & (current["metric"] != ERROR)
    if not usable.any():
        reasons = "; ".join(dict.fromkeys(current["note"].dropna().astype(str)))
        reason = f"every fit failed: {reasons}" if reasons else "there is none"
        raise fw.InvalidInputError(f"rows must have at least one value, but {reason}")
    scale = current["experiment"].map({n: one.scale for n, one in settings.experiments.items()})
    scaled = value * scale.where(current["metric"].isin(SCALED), 1.0)
    return Results(
        rows=current[usable].assign(value=scaled[usable]).reset_index(drop=True),
        settings=settings,
        failures=current[~usable].reset_index(drop=True),
        superseded=len(chosen) - len(current),
        quick=quick,
        left_out=len(table) - len(chosen),
    )


def _latest(table: pd.DataFrame) -> pd.DataFrame:
    """Of a method that was run with several settings, the rows of the one that finished last."""
    table = table.assign(
        **{name: table[name].astype(object).fillna("").astype(str)
           for name in ("config_hash", "finished_at")}
    ).sort_values("finished_at", kind="stable")  # fmt: skip
    last = table.groupby(["experiment", "method"])["config_hash"].transform("last")
    current = table[table["config_hash"] == last]
    return current.drop_duplicates(_KEY, keep="last").sort_index()


class MissingFits(NamedTuple):
    """Fits of one experiment, of this title, that are not in the table, with a line for some."""

    experiment: str
    planned: int
    found: int
    lines: tuple[str, ...]


def missing_fits(results: Results) -> tuple[MissingFits, ...]:
    """Experiments that are not complete, in the settings' order."""
    there = set(results.rows[_FIT].itertuples(index=False, name=None))
    found = []
    for name, table in results.settings.experiments.items():
        sizes = list(product(table.n_train, dict(table.scenarios)))
        planned = list(product(table.methods, sizes, range(table.n_seeds)))
        gone = [(m, size, s) for m, size, s in planned if (name, m, s, *size) not in there]
        absent = pd.DataFrame(gone, columns=["method", "size", "seed"])
        lines: list[str] = []
        for method, own in absent.groupby("method", sort=False):
            title = results.method_title(str(method))
            texts = {size: _seeds(list(seeds), table.n_seeds)
                     for size, seeds in own.groupby("size", sort=False)["seed"]}  # fmt: skip
            if len(texts) == len(sizes) and len(set(texts.values())) == 1:
                lines.append(f"{title}: {texts[sizes[0]]}")
            else:
                lines += [f"{title}, {n} rows, M_train {m}: {t}" for (n, m), t in texts.items()]
        if gone:
            shown = ("nothing yet",) if len(gone) == len(planned) else tuple(lines)
            count = len(planned) - len(gone)
            found.append(MissingFits(table.title, len(planned), count, shown))
    return tuple(found)


def _seeds(seeds: list[int], n_planned: int) -> str:
    if len(seeds) == n_planned:
        return "all seeds"
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def failed_fits(results: Results) -> tuple[str, ...]:
    """What failed or gave no finite value, and why."""
    lines = []
    for row in results.failures.to_dict("records"):
        title = results.settings.experiments[row["experiment"]].title
        why = f"{row['metric']} at M = {row['m']} is not a finite number"
        if row["metric"] == ERROR:
            why = str(row["note"] or "no reason given")
        method = results.method_title(row["method"])
        lines.append(f"{title}, {method}, seed {row['seed']}: {why[:_LONGEST_REASON]}")
    return tuple(dict.fromkeys(lines))
