"""The planner in a case of newsvendors: a table and the roles of its columns, and nothing else.

Each service level has a planner of its own. It chooses its method once, on the rows before the
first window, and learns anew before every window, as `Planner.evaluate` does for anybody; the
windows and the rows are those of the other methods of the case.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch

import forewise as fw
from forewise import features
from forewise.datasets import bakery
from forewise.exceptions import InvalidInputError
from forewise.planner.evaluation import evaluate
from forewise.predictors import RelativePredictor
from forewise_lab.datasets.real import bakery_newsvendor
from forewise_lab.experiments.cases import load_case
from forewise_lab.experiments.configuration import CaseTable
from forewise_lab.experiments.rolling import (
    COST,
    evaluation_windows,
    pack_costs,
    tuning_window,
)
from forewise_lab.experiments.rows import Key, Product, Row, Work, hash_of, key_of

METHOD = "planner"
#: Metrics: mean cost; share of costs within their 90 % interval, over all and in the worst month;
#: and processor seconds of the first fit, with the choice of the method.
COVERED, LEAST, FITTED = "covered", "covered in the worst month", "fit seconds"
_METRICS = (COST, COVERED, LEAST, FITTED)
_SERIES = ["store", "product"]
_NOISE = {"temperature": 2.0, "rain": 2.0}  # of the forecast, as in `bakery_contexts`
_ROLES: dict[str, Any] = {
    "outcome": "demand",
    "date": "date",
    "series": _SERIES,
    "known": [
        *("holiday", "holiday_in_2_days", "school_holiday", "promotion", "promotion_last_week"),
        *(f"{name}_forecast" for name in _NOISE),
    ],
    "closed": "closed",
}


@lru_cache(maxsize=1)
def planner_table(data_dir: Path | None, stores: tuple[int, ...] | None) -> pd.DataFrame:
    """The bakery as a planner has it: tomorrow's weather is a forecast."""
    table = bakery(data_dir)
    if stores is not None:
        table = table[table["store"].isin(stores)].reset_index(drop=True)
    forecast = features.weather_forecast(table, list(_NOISE), _NOISE, "store", random_state=0)
    return table.drop(columns=["weekday", *_NOISE]).assign(**forecast)


class _Timed(fw.Planner):
    """A planner that knows how long its fit takes, fits that it took from others included."""

    def fit(self, table: Any) -> Self:
        started, spared = time.process_time(), _SPARED[0]
        super().fit(table)
        self.seconds_ = time.process_time() - started + _SPARED[0] - spared
        return self


_FITS: dict[str, tuple[dict[str, Any], float]] = {}
_SPARED = [0.0]  # processor seconds of fits that were not done again


@contextmanager
def shared_fits() -> Iterator[None]:
    """What a predictor learns does not depend on the service level: levels share equal fits."""
    own = RelativePredictor.fit

    def fit(self: RelativePredictor, X: Any, y: Any, *, censored: Any = None) -> RelativePredictor:
        digest = sha256(repr(self).encode())
        for part in (X, y, censored):
            digest.update(b"" if part is None else np.ascontiguousarray(part).data)
        key = digest.hexdigest()
        if key not in _FITS:
            started = time.process_time()
            own(self, X, y, censored=censored)
            _FITS[key] = vars(self).copy(), time.process_time() - started
        else:
            self.__dict__.update(_FITS[key][0])
            _SPARED[0] += _FITS[key][1]
        return self

    RelativePredictor.fit = fit  # type: ignore[method-assign]
    try:
        yield
    finally:
        RelativePredictor.fit = own  # type: ignore[method-assign]


@dataclass(frozen=True)
class PlannerFit(Work):
    """The planner at one service level, evaluated in all windows of a case."""

    experiment: str
    level: float
    case: CaseTable
    time_limit: float | None = None
    data_dir: Path | None = None

    @property
    def name(self) -> str:
        return f"{self.experiment} {METHOD} at {self.level:g}"

    @property
    def config_hash(self) -> str:
        roles = {role: list(names) for role, names in _ROLES.items()}
        return hash_of([METHOD, self.level, self.time_limit, roles, self.case.scope()])

    @property
    def source(self) -> Hashable | None:
        return self.case.source

    def require_data(self) -> None:
        planner_table(self.data_dir, self.case.source.stores)

    def columns(self) -> Row:
        return {
            **{"experiment": self.experiment, "method": f"{METHOD} {self.level:g}", "seed": 0},
            **{"n_train": None, "m_train": None, "config_hash": self.config_hash},
        }

    def row_keys(self) -> Iterator[Key]:
        for metric in _METRICS:
            yield key_of(self.columns() | {"m": self.case.m, "metric": metric})

    def produce(self) -> Product:
        case, table = self.case, planner_table(self.data_dir, self.case.source.stores)
        table = table[table["date"] <= pd.Timestamp(case.last_day)]
        problem = bakery_newsvendor(self.level)
        planner = _Timed(problem, **_ROLES, time_limit=self.time_limit, n_scenarios=case.m)
        days = (case.first_day - table["date"].min().date()).days
        with shared_fits():
            found = evaluate(planner, table, None, case.window, days, 0.95)
        windows = evaluation_windows(case)
        if found.costs["window"].nunique() != len(windows):
            raise InvalidInputError(
                f"{self.experiment} must be decided in {len(windows)} windows, but was in "
                f"{found.costs['window'].nunique()}"
            )
        decided = self._of_the_case(found.costs)
        inside = decided["cost_planner"].between(decided["cost_lower"], decided["cost_upper"])
        by_month = inside.groupby(decided["date"].dt.strftime("%Y-%m")).mean()
        values = {
            COST: decided["cost_planner"].mean(),
            COVERED: inside.mean(),
            LEAST: by_month.min(),
            FITTED: planner.seconds_,
        }
        file = f"costs/{self.experiment}/{METHOD}-{self.level:g}-{self.config_hash}.npz"
        kept = {"cost": "cost_planner", "lower": "cost_lower", "upper": "cost_upper"}
        content = pack_costs(
            decided["date"].to_numpy().astype("datetime64[D]"),
            decided["number"].to_numpy(),
            {name: torch.tensor(decided[own].to_numpy()) for name, own in kept.items()},
        )
        common = self.columns() | {
            "m": case.m,
            "seconds": planner.seconds_,
            "n_decided": len(decided),
            "costs_file": file,
            "verdict": planner.verdict_,
        }
        rows = [common | {"metric": name, "value": float(value)} for name, value in values.items()]
        return Product(rows, {file: content})

    def _of_the_case(self, costs: pd.DataFrame) -> pd.DataFrame:
        """The rows that the other methods decide, with the number of their series."""
        rows = load_case(self.case.source, self.data_dir, tuning_window(self.case).start)
        names = costs["store"].astype(str) + "/" + costs["product"].astype(str)
        numbers = {name: number for number, name in enumerate(rows.series_names)}
        own = costs.assign(number=names.map(numbers))
        of_case = pd.DataFrame({"date": rows.days.astype("datetime64[s]"), "number": rows.series})
        return own.merge(of_case, on=["date", "number"], validate="one_to_one").sort_values(
            ["date", "number"], ignore_index=True
        )
