"""What a settings file may say: experiments, methods, and the paper's own figures.

A file is TOML with two kinds of tables, ``[methods.NAME]`` and ``[experiments.NAME]``; the classes
below are their keys. May import: exceptions, learners, predictors (for the names of settings), and
its sibling `kinds`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, field_validator

from forewise_lab.experiments.kinds import DATASETS, METRICS, PROBLEMS, SOLVERS

Count = Annotated[StrictInt, Field(ge=1)]
#: M_train and M.
Pair = tuple[Count, Count]
#: A table of settings that another layer checks when it is used.
Free = dict[str, Any]


def one_of(name: str, known: Collection[str]) -> str:
    """The name, if it is a known one."""
    if name not in known:
        raise ValueError(f"must be one of {', '.join(known)}, but is {name!r}")
    return name


def known_in(names: Collection[str]) -> AfterValidator:
    """For a field whose text must be one of these."""
    return AfterValidator(lambda name: one_of(name, names))


class Table(BaseModel):
    """A table of a settings file: unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DatasetTable(Table):
    """Which data: `name`, and how many rows to validate and test on if not the paper's."""

    name: Annotated[str, known_in(DATASETS)]
    n_assets: Count | None = None
    n_validation: Count | None = None
    n_test: Count | None = None


class ProblemTable(Table):
    """Which problem: `name`, and the few numbers that can be set."""

    name: Annotated[str, known_in(PROBLEMS)]
    budget: float | None = None
    minimum_return: float | None = None


class OracleTable(Table):
    """Draws from the true distribution for the oracle, and for the metric FR32."""

    draws: Count
    few_draws: Count = 32


class RollingTable(Table):
    """How a method learns in a case, an experiment that rolls over time.

    Parameters
    ----------
    each : {"all", "series"}
        One model of all rows, or one for each series.
    history_days : int, optional
        Days before a window that are trained on; all by default.
    relative : bool
        Learn outcomes as multiples of a recent mean of the series, where the case has one.
    trials : list of tables
        Changes of the method, one of which is chosen by its cost on the tuning days.
    """

    each: Literal["all", "series"] = "all"
    history_days: Count | None = None
    relative: bool = False
    trials: tuple[Free, ...] = ()


class MethodTable(Table):
    """How decisions are learned; what is left out comes from `like`, or from the experiment.

    `learner` and `predictor` are tables with a `kind` and that class's own settings, `training`
    are settings of `forewise.Training`. Draws of a Bayesian network's weights in decoupled
    training are M_train, unless the predictor has `n_scenarios`; in combined training the
    programs have M_train scenarios in any case. `keep` says which epoch's weights are kept: the
    best on the validation rows, or the last. `m` replaces the experiment's M, for methods that
    have no reason to be sparing. `rolling` is for cases alone.
    """

    title: str | None = None
    like: str | None = None
    learner: Free = {}
    predictor: Free = {}
    training: Free = {}
    keep: Literal["best", "last"] | None = None
    m: tuple[Count, ...] | None = None
    rolling: RollingTable | None = None


class NetworkTable(Table):
    """What all networks of an experiment have, unless a method says otherwise."""

    hidden_sizes: tuple[Count, ...]
    training: Free = {}


class PaperFigure(Table):
    """A figure of the paper, in the units of its tables."""

    method: str
    metric: str
    mean: float
    std: float | None = None
    m_train: Count | None = None
    m: Count | None = None


class ExperimentTable(Table):
    """One experiment: data, problem, methods, and what is measured.

    Parameters
    ----------
    title : str
    dataset, problem, oracle : tables
        `oracle` is left out where the true distribution is not known.
    n_train : list of int
        Training rows; one fit for each.
    scenarios : list of pairs
        (M_train, M).
    headline : pair
        The (M_train, M) that a table with one figure per method shows.
    metrics : list of str
        Figures to compute.
    methods : list of str
        Methods to run.
    solver : {"auto", "vertex", "ridge"}
        How ties are broken. Of several optimal decisions "auto" gives the centre (where there is no
        closed form); "vertex" a corner, in decisions and in the oracle's; "ridge" adds the authors'
        quadratic term, in combined training and in decisions, not in the oracle's.
    network : table
        What all networks have.
    only : table of tables
        What is special to one method in this experiment.
    n_seeds : int
        Runs, unless others are asked for; the paper has five.
    keep_policies : bool
        Save what was fitted beside the rows: ``policies/EXPERIMENT/seedN/METHOD``.
    scale : float
        What tables multiply R, FR, EFR, FR32 and cost with. Stored values are never scaled.
    paper : list of tables
        The paper's figures, in the units of its tables.
    """

    title: str
    dataset: DatasetTable
    problem: ProblemTable
    oracle: OracleTable | None = None
    n_train: tuple[Count, ...]
    scenarios: tuple[Pair, ...]
    headline: Pair
    metrics: tuple[str, ...]
    methods: tuple[str, ...]
    solver: Annotated[str, known_in(SOLVERS)] = "auto"
    network: NetworkTable
    only: dict[str, MethodTable] = {}
    n_seeds: Count = 5
    keep_policies: bool = False
    scale: float = 1.0
    paper: tuple[PaperFigure, ...] = ()

    @field_validator("metrics")
    @classmethod
    def _are_known(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        for metric in metrics:
            one_of(metric, METRICS)
        return metrics
