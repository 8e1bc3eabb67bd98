"""The words of the settings files, what each stands for, and what is said of an unknown one.

To add a data set, a problem, a predictor, a schedule or an encoding to what settings files can
name, add a line to its table.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import forewise as fw
from forewise import predictors
from forewise_lab.datasets.cnnpred import pop2_paper, pop2_strict
from forewise_lab.datasets.paper import paper_split, pop2_problem

#: R: regret; FR: fair regret at the outcomes seen; EFR: fair regret over the true distribution;
#: FR32: as FR, against an oracle of few draws; cost; CRPS; coverage90: share of outcomes in the
#: central 90 % interval. The last two need a method with scenarios.
METRICS = ("R", "FR", "EFR", "FR32", "cost", "CRPS", "coverage90")
FORECAST_METRICS = frozenset({"CRPS", "coverage90"})
ORACLE_METRICS = frozenset({"FR", "EFR", "FR32"})

#: Perfect foresight: the outcome is known, a lower bound to compare with.
FORESIGHT = "foresight"
#: Learners whose policies have no scenarios.
WITHOUT_SCENARIOS = frozenset({"direct", "constant"})

PREDICTORS: dict[str, type[fw.Predictor]] = {
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

    training: fw.Solver = field(default_factory=fw.AutoSolver)
    deciding: fw.Solver = field(default_factory=fw.AutoSolver)
    oracle: fw.Solver = field(default_factory=fw.AutoSolver)


#: The quadratic term of the paper's text, in the authors' size.
_RIDGE = fw.solvers.RidgeSolver(0.001)

#: Of several optimal decisions "auto" gives the centre, "vertex" a corner, "ridge" the shortest.
SOLVERS: dict[str, Solvers] = {
    "auto": Solvers(),
    "vertex": Solvers(deciding=fw.ReferenceSolver(), oracle=fw.ReferenceSolver()),
    "ridge": Solvers(training=_RIDGE, deciding=_RIDGE),
}

SCHEDULES: dict[str, type[fw.predictors.Schedule]] = {
    "cosine": predictors.CosineSchedule,
    "exponential": predictors.ExponentialSchedule,
}
ENCODINGS: dict[str, type[fw.predictors.Encoding]] = {"periodic": predictors.FourierFeatures}


def _synthetic(
    name: str, seed: int, n_train: int, n_assets: int | None, data_dir: Path | None
) -> fw.datasets.Split:
    return paper_split(name, seed, n_train=n_train, n_assets=n_assets)


def _real(
    load: Callable[[Path | None], fw.datasets.Split],
    seed: int,
    n_train: int,
    n_assets: int | None,
    data_dir: Path | None,
) -> fw.datasets.Split:
    """Real data are the same for every seed; fewer training rows are the most recent ones."""
    split = load(data_dir)
    return fw.datasets.Split(split.train[-n_train:], split.validation, split.test)


#: From (seed, n_train, n_assets, data_dir) to the three data sets of a run.
DATASETS: dict[str, Callable[..., fw.datasets.Split]] = {
    **{name: partial(_synthetic, name) for name in ("nv1", "nv2", "nvqp", "pop")},
    "pop2-paper": partial(_real, pop2_paper),
    "pop2-strict": partial(_real, pop2_strict),
}
#: Data sets that are read from files.
REAL = frozenset({"pop2-paper", "pop2-strict"})


def _pop(split: fw.datasets.Split, **numbers: Any) -> fw.Problem:
    return fw.datasets.pop_problem(split.train.y, **numbers)


#: From the data of a run, and the numbers that can be set, to its problem.
PROBLEMS: dict[str, Callable[..., fw.Problem]] = {
    "nv": lambda split: fw.datasets.nv_problem(),
    "nvqp": lambda split, **numbers: fw.datasets.nvqp_problem(**numbers),
    "pop": _pop,
    "pop2": lambda split: pop2_problem(),
}
PROBLEM_NUMBERS = {"nv": set(), "nvqp": {"budget"}, "pop": {"minimum_return"}, "pop2": set()}


def unknown(kind: str, name: str, known: Iterable[str]) -> fw.InvalidInputError:
    """The error for a name that does not exist, with those that it may have meant."""
    known = list(dict.fromkeys(known))
    hint = closest(name, known) or f"; there are {', '.join(known)}"
    return fw.InvalidInputError(f"there is no {kind} named {name!r}{hint}")


def closest(name: str, known: Iterable[str]) -> str:
    """What a name may have meant, as the end of a sentence; empty if nothing is like it."""
    close = difflib.get_close_matches(name, list(known), n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""
