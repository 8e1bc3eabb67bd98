"""The words of the settings files, and what each stands for.

To add a data set, a problem, a predictor, a schedule or an encoding to what settings files can
name, add a line to its table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from forewise import predictors
from forewise.datasets import (
    Split,
    nv_problem,
    nvqp_problem,
    pop_problem,
)
from forewise.predictors import Encoding, Predictor, Schedule
from forewise.problems import Problem
from forewise.solvers import AutoSolver, ReferenceSolver, RidgeSolver, Solver
from forewise_lab.datasets import paper_split, pop2_paper, pop2_problem, pop2_strict

#: R: regret; FR: fair regret at the outcomes seen; EFR: fair regret over the true distribution;
#: FR32: as FR, against an oracle of few draws; cost; CRPS; coverage90: share of outcomes in the
#: central 90 % interval. The last two need a method with scenarios.
METRICS = ("R", "FR", "EFR", "FR32", "cost", "CRPS", "coverage90")
FORECAST_METRICS = frozenset({"CRPS", "coverage90"})
ORACLE_METRICS = frozenset({"FR", "EFR", "FR32"})

#: Perfect foresight: the outcome is known, a lower bound to compare with.
FORESIGHT = "foresight"
LEARNERS = ("decoupled", "combined", "direct", "constant", "oracle", FORESIGHT)
#: Learners whose policies have no scenarios.
WITHOUT_SCENARIOS = frozenset({"direct", "constant"})

PREDICTORS: dict[str, type[Predictor]] = {
    "bayesian": predictors.MeanFieldPredictor,
    "bayesian-default": predictors.BayesianPredictor,
    "mixture": predictors.MixturePredictor,
    "point": predictors.PointPredictor,
    "gaussian": predictors.GaussianPredictor,
    "ensemble": predictors.EnsemblePredictor,
    "gaussian-process": predictors.GaussianProcessPredictor,
    "neighbor": predictors.NeighborPredictor,
    "forest": predictors.ForestPredictor,
    "empirical": predictors.EmpiricalPredictor,
    "residual": predictors.ResidualPredictor,
    "grouped": predictors.GroupedPredictor,
    "boosting": predictors.BoostingPredictor,
    "boosted-quantiles": predictors.QuantileBoostingPredictor,
}
NETWORKS = frozenset({"bayesian", "mixture", "point", "gaussian", "ensemble"})


@dataclass(frozen=True)
class Solvers:
    """Solvers of training, of decisions for the test rows, and of the oracle's decisions."""

    training: Solver = field(default_factory=AutoSolver)
    deciding: Solver = field(default_factory=AutoSolver)
    oracle: Solver = field(default_factory=AutoSolver)


#: The quadratic term of the paper's text, in the authors' size.
_RIDGE = RidgeSolver(0.001)

#: Of several optimal decisions "auto" gives the centre, "vertex" a corner, "ridge" the shortest.
SOLVERS: dict[str, Solvers] = {
    "auto": Solvers(),
    "vertex": Solvers(deciding=ReferenceSolver(), oracle=ReferenceSolver()),
    "ridge": Solvers(training=_RIDGE, deciding=_RIDGE),
}

SCHEDULES: dict[str, type[Schedule]] = {
    "cosine": predictors.CosineSchedule,
    "exponential": predictors.ExponentialSchedule,
}
ENCODINGS: dict[str, type[Encoding]] = {"periodic": predictors.FourierFeatures}


def _synthetic(
    name: str, seed: int, n_train: int, n_assets: int | None, data_dir: Path | None
) -> Split:
    return paper_split(name, seed, n_train=n_train, n_assets=n_assets)


def _real(
    load: Callable[[Path | None], Split],
    seed: int,
    n_train: int,
    n_assets: int | None,
    data_dir: Path | None,
) -> Split:
    """Real data are the same for every seed; fewer training rows are the most recent ones."""
    split = load(data_dir)
    return Split(split.train[-n_train:], split.validation, split.test)


#: From (seed, n_train, n_assets, data_dir) to the three data sets of a run.
DATASETS: dict[str, Callable[..., Split]] = {
    **{name: partial(_synthetic, name) for name in ("nv1", "nv2", "nvqp", "pop")},
    "pop2-paper": partial(_real, pop2_paper),
    "pop2-strict": partial(_real, pop2_strict),
}
#: Data sets that are read from files.
REAL = frozenset({"pop2-paper", "pop2-strict"})


def _pop(split: Split, **numbers: Any) -> Problem:
    return pop_problem(split.train.y, **numbers)


#: From the data of a run, and the numbers that can be set, to its problem.
PROBLEMS: dict[str, Callable[..., Problem]] = {
    "nv": lambda split: nv_problem(),
    "nvqp": lambda split, **numbers: nvqp_problem(**numbers),
    "pop": _pop,
    "pop2": lambda split: pop2_problem(),
}
PROBLEM_NUMBERS = {"nv": set(), "nvqp": {"budget"}, "pop": {"minimum_return"}, "pop2": set()}
