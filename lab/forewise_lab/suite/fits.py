"""A method on a split of a table, evaluated by its decisions for the held-out rows.

Real tables are folders of ``uci`` in the data folder, with ``data.csv.gz`` (the last column is the
outcome) and ``test_mask.csv.gz`` (a column for each split). Two decisions are made of each:

* cost: a newsvendor at five service levels, shortage = level and excess = 1 - level, orders of any
  sign; the mean over levels.
* budget: each three held rows, in the table's order, are three products that share a budget. Demand
  is the outcome in units of the training rows' range, a shortage s costs 0.9 (s + s²), an excess e
  0.1 (e + e²), and the budget pays for three times the training rows' mean. The squares make the
  best orders unique. Costs are a sum over products: only their own distributions matter, each
  given by 64 quantiles.

NV1, NV2, NVQP and POP are the paper's, decided with 64 scenarios: fair regret (FR) and cost.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import torch

import forewise as fw
from forewise.datasets.files import search_places
from forewise_lab.datasets.paper import paper_split
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.kinds import PROBLEMS, unknown
from forewise_lab.experiments.rows import Key, Product, Row, Work, key_of
from forewise_lab.suite.methods import AUTO, config_hash, make_method

PAPER = ("nv1", "nv2", "nvqp", "pop")
#: Suffix of a table's name in rows of evaluation on training rows.
INNER = " inner"
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
_M = 64  # scenarios
_PRODUCTS, _SHORTAGE = 3, 0.9
_INNER_SHARE = 5  # one in so many training rows is held out


@dataclass(frozen=True)
class SuiteFit(Work):
    """A method on a split of a table; computed again when the method's code has changed.

    Held out are the test rows. With `inner` they are a fifth of the training rows (the validation
    rows of the paper's problems), and test rows are not looked at.
    """

    method: str
    table: str
    split: int
    inner: bool = False
    data_dir: Path | None = None

    @property
    def name(self) -> str:
        return f"{self.method} on {self.table}{INNER * self.inner}, split {self.split}"

    @property
    def metrics(self) -> tuple[str, ...]:
        own = ("FR", "cost") if self.table in PAPER else ("cost", "budget")
        return (*own, "CRPS", "coverage90")

    def columns(self) -> Row:
        return {
            **{"experiment": self.table + INNER * self.inner, "method": self.method},
            **{"seed": self.split, "n_train": self.rows()[0].n_contexts, "m_train": 0},
            "config_hash": config_hash(self.method),
        }

    def row_keys(self) -> Iterator[Key]:
        columns = self.columns()
        return (key_of(columns | {"m": _M, "metric": metric}) for metric in self.metrics)

    @property
    def source(self) -> Hashable | None:
        return (self.table, self.split)

    def require_data(self) -> None:
        self.rows()

    def produce(self) -> Product:
        train, held = self.rows()
        # Processor time: with one thread it is what a quiet machine's clock would show.
        started = time.process_time()
        predictor = self.fit(train)
        shared = self.columns() | {"m": _M, "seconds": time.process_time() - started}
        found = self.evaluate(predictor, train, held)
        return Product([shared | {"metric": name, "value": found[name]} for name in found])

    def rows(self) -> tuple[fw.datasets.Dataset, fw.datasets.Dataset]:
        """Training rows and held rows."""
        if self.table in PAPER:
            parts = _paper(self.table, self.split)[0]
            return parts.train, parts.validation if self.inner else parts.test
        whole, masks = _read(self.table, self.data_dir)
        if not 0 <= self.split < masks.shape[1]:
            raise fw.InvalidInputError(
                f"splits of {self.table} must be below {masks.shape[1]}, but one is {self.split}"
            )
        test = masks[:, self.split]
        if not self.inner:
            return whole[~test], whole[test]
        train = whole[~test]
        order = np.random.default_rng(self.split).permutation(train.n_contexts)
        out = order < train.n_contexts // _INNER_SHARE
        return train[~out], train[out]

    def fit(self, train: fw.datasets.Dataset) -> fw.Predictor:
        """The method's predictor, fitted; `AutoLearner` chooses one for the problem."""
        if self.method != AUTO:
            return make_method(self.method).fit(train.X, train.y)
        problem = _paper(self.table, self.split)[1] if self.table in PAPER else _service_levels()
        policy = fw.AutoLearner(problem, random_state=0).fit(train.X, train.y).policy_
        return policy.predictor  # type: ignore[attr-defined]

    def evaluate(
        self, predictor: fw.Predictor, train: fw.datasets.Dataset, held: fw.datasets.Dataset
    ) -> dict[str, float]:
        """The metrics of a fitted predictor on the held rows."""
        scenarios = predictor.sample(held.X, _M, random_state=0)
        outcome = torch.from_numpy(held.y)
        found: dict[str, Any] = {
            "CRPS": fw.metrics.crps(scenarios, outcome).mean(),
            "coverage90": fw.metrics.interval_coverage(scenarios, outcome, 0.9).mean(),
        }
        if self.table in PAPER:
            problem = _paper(self.table, self.split)[1]
            decision = fw.solve(problem, scenarios).decision
            draws = load_settings().experiments[self.table].oracle.draws  # type: ignore[union-attr]
            true = held.true_scenarios(draws, np.random.default_rng([self.split, draws]))
            found["FR"] = fw.fair_regret(problem, decision, outcome, true)
            found["cost"] = problem.cost(decision, outcome).mean()
        else:
            found["cost"] = level_cost(scenarios, outcome)
            found["budget"] = budget_cost(scenarios, outcome, train.y)
        metrics = {name: float(found[name]) for name in self.metrics}
        if not np.isfinite(list(metrics.values())).all():
            raise fw.ForewiseError(f"metrics must be finite, but are {metrics}")
        return metrics


def level_cost(scenarios: fw.Scenarios, outcome: torch.Tensor) -> torch.Tensor:
    """Mean cost of a newsvendor's orders over rows and service levels."""
    # Orders are not negative: the lowest scenario is called 0, and no order is below it.
    low = scenarios.values.min()
    shifted = fw.Scenarios(scenarios.values - low, scenarios.weights)
    problems = [fw.Newsvendor(shortage=level, excess=1 - level) for level in LEVELS]
    costs = [p.cost(fw.solve(p, shifted).decision, outcome - low) for p in problems]
    return torch.stack(costs).mean()


def budget_cost(scenarios: fw.Scenarios, outcome: torch.Tensor, past: np.ndarray) -> torch.Tensor:
    """Mean cost of three products that share a budget; one or two last rows are left out."""
    low, spread = float(past.min()), float(np.ptp(past)) or 1.0
    kept = len(outcome) - len(outcome) % _PRODUCTS
    if not kept:
        raise fw.InvalidInputError(
            f"held rows must be at least {_PRODUCTS}, but are {len(outcome)}"
        )
    demand, seen = (
        ((values[:kept] - low) / spread).reshape(-1, _PRODUCTS, values.shape[1]).transpose(1, 2)
        for values in (_quantiles(scenarios), outcome)
    )
    short, over = _SHORTAGE, 1 - _SHORTAGE
    budget = _PRODUCTS * (float(past.mean()) - low) / spread
    problem = fw.QuadraticNewsvendor(
        0.0, [0.0] * _PRODUCTS, short, short, over, over, price=1.0, budget=budget
    )
    return problem.cost(fw.solve(problem, fw.Scenarios(demand)).decision, seen[:, 0]).mean()


def _quantiles(scenarios: fw.Scenarios) -> torch.Tensor:
    """Equally likely values (n_contexts, 64) of one outcome, from weighted scenarios."""
    values, order = scenarios.values[:, :, 0].sort(dim=1)
    below = scenarios.weights.expand(values.shape).gather(1, order).cumsum(1)
    levels = (torch.arange(_M, dtype=values.dtype) + 0.5) / _M
    places = torch.searchsorted(below, levels.repeat(len(values), 1))
    return values.gather(1, places.clamp_max(values.shape[1] - 1))


@lru_cache(maxsize=1)
def _service_levels() -> fw.Problem:
    """The five newsvendors as one problem with five decisions, by which `AutoLearner` chooses."""
    level = np.array(LEVELS)
    order, demand = cp.Variable(len(LEVELS)), cp.Parameter(1)
    cost = level @ cp.pos(demand - order) + (1 - level) @ cp.pos(order - demand)
    return fw.CvxpyProblem(cp.Minimize(cost / len(LEVELS)), [], decision=order, outcome=demand)


@lru_cache(maxsize=4)
def _paper(table: str, seed: int) -> tuple[fw.datasets.Split, fw.Problem]:
    """Data and problem of a run of the paper's experiment."""
    parts, problem = paper_split(table, seed), load_settings().experiments[table].problem
    numbers = problem.model_dump(exclude={"name"}, exclude_none=True)
    return parts, PROBLEMS[problem.name](parts, **numbers)


def real_tables(data_dir: Path | None = None) -> dict[str, Path]:
    """Folders of the real tables that are here by name, smallest first."""
    places = [place / "uci" for place in search_places(data_dir)]
    for place in places:
        files = sorted(place.glob("*/data.csv.gz"), key=lambda file: file.stat().st_size)
        if files:
            return {file.parent.name: file.parent for file in files}
    raise fw.MissingDataError(
        "there are no tables: sought folders with data.csv.gz and test_mask.csv.gz in "
        f"{', '.join(map(str, places))}; set FOREWISE_DATA or --data-dir, or name --tables of the "
        f"paper: {', '.join(PAPER)}"
    )


@lru_cache(maxsize=32)
def _read(table: str, data_dir: Path | None) -> tuple[fw.datasets.Dataset, np.ndarray]:
    """All rows of a table, and masks of the test rows (n_rows, n_splits)."""
    folders = real_tables(data_dir)
    if table not in folders:
        raise unknown("table", table, [*folders, *PAPER])
    rows, masks = (
        np.loadtxt(folders[table] / f"{name}.csv.gz", delimiter=",", ndmin=2)
        for name in ("data", "test_mask")
    )
    names = [f"x{column}" for column in range(rows.shape[1] - 1)]
    return fw.datasets.Dataset(rows[:, :-1], rows[:, -1:], names, ["y"]), masks > 0
