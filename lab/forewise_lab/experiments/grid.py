"""Which fits an experiment consists of.

May import: exceptions, and its siblings `schema`, `loading`, `methods`, `judging`, `fitting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from forewise.exceptions import InvalidInputError
from forewise_lab.experiments.fitting import Fit, KeptFit
from forewise_lab.experiments.judging import Setting
from forewise_lab.experiments.loading import Settings
from forewise_lab.experiments.methods import Method
from forewise_lab.experiments.schema import ExperimentTable

# The quick version: everything so small that a whole table is a matter of minutes.
_QUICK_ROWS, _QUICK_EPOCHS, _QUICK_DRAWS, _QUICK_M = 120, 2, 100, 32
_QUICK_SIZES = (16, 16)


def all_fits(
    settings: Settings,
    experiments: Iterable[str],
    methods: Iterable[str] | None,
    seeds: Sequence[int] | None = None,
    data_dir: Path | None = None,
    quick: bool = False,
) -> list[Fit]:
    """The fits of some experiments, those that share data one after the other.

    Without `seeds`, every experiment has its own.
    """
    asked = None if methods is None else list(methods)
    names = settings.experiment_names(experiments)
    return [fit for name in names for fit in _fits(settings, name, asked, seeds, data_dir, quick)]


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """A number of seeds as 0, 1, 2 ...; a list as it is."""
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    for seed in numbers:
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise InvalidInputError(f"seeds must be whole numbers of at least 0, but has {seed!r}")
    if not numbers:
        raise InvalidInputError("seeds must be at least one seed, but there is none")
    return list(dict.fromkeys(numbers))


def _fits(
    settings: Settings,
    name: str,
    asked: list[str] | None,
    seeds: Sequence[int] | None,
    data_dir: Path | None,
    quick: bool,
) -> Iterable[Fit]:
    table = settings.experiments[name]
    methods = [settings.method(name, method) for method in settings.method_names(name, asked)]
    if quick:
        table, methods = _quick_table(table), [_quick_method(method) for method in methods]
    kind = KeptFit if table.keep_policies else Fit
    for n_train in table.n_train:
        for seed in range(table.n_seeds) if seeds is None else seeds:
            setting = Setting(
                table.dataset, table.problem, table.oracle, seed, n_train, table.solver, data_dir
            )
            for method in methods:
                for m_train in dict.fromkeys(pair[0] for pair in table.scenarios):
                    own = tuple(pair[1] for pair in table.scenarios if pair[0] == m_train)
                    yield kind(name, method, setting, m_train, method.m or own, table.metrics)


def _quick_table(table: ExperimentTable) -> ExperimentTable:
    """The experiment with few rows and draws; figures mean nothing, but everything is run."""
    few = {"n_validation": _QUICK_ROWS, "n_test": _QUICK_ROWS}
    oracle = table.oracle
    return table.model_copy(
        update={
            "dataset": table.dataset.model_copy(update=few),
            "oracle": oracle and oracle.model_copy(update={"draws": _QUICK_DRAWS}),
            "n_train": tuple(dict.fromkeys(min(n, _QUICK_ROWS) for n in table.n_train)),
            "scenarios": tuple(
                dict.fromkeys((min(a, _QUICK_M), min(b, _QUICK_M)) for a, b in table.scenarios)
            ),
        }
    )


def _quick_method(method: Method) -> Method:
    learner, predictor = dict(method.learner), dict(method.predictor)
    if "pretraining" in learner:
        learner["pretraining"] = learner["pretraining"] | {"epochs": _QUICK_EPOCHS}
    if "n_restarts" in predictor:
        predictor["n_restarts"] = 0
    return replace(
        method,
        learner=learner,
        predictor=predictor,
        hidden_sizes=_QUICK_SIZES,
        training=method.training | {"epochs": _QUICK_EPOCHS},
        m=None if method.m is None else (_QUICK_M,),
    )
