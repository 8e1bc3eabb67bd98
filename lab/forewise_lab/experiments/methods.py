"""From a method's settings to a fitted rule, which decides for the test rows."""

from __future__ import annotations

import difflib
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from forewise.datasets import Dataset
from forewise.evaluation import oracle_decision
from forewise.exceptions import InvalidInputError
from forewise.learners import CombinedLearner, DecoupledLearner, DirectLearner
from forewise.learners.objectives import context_free_regret
from forewise.policy import Policy, ScenarioPolicy
from forewise.predictors import (
    CosineSchedule,
    EnsemblePredictor,
    OffSupportFallback,
    PointPredictor,
    Predictor,
    Training,
)
from forewise.predictors.networks.heads import gaussian_head
from forewise.predictors.networks.network import Layout
from forewise.problems import Problem
from forewise.problems.base import without_risk
from forewise.scenarios import Scenarios
from forewise.solvers import Solver
from forewise_lab.experiments import kinds
from forewise_lab.experiments.kinds import FORESIGHT, NETWORKS, Solvers

_LEARNERS = {"decoupled": DecoupledLearner, "combined": CombinedLearner, "direct": DirectLearner}
# Rules that are not learned, and their settings.
_FIXED: dict[str, set[str]] = {"constant": {"decision"}, "oracle": set(), FORESIGHT: set()}
# Of the quick version, which only has to run.
_QUICK = {"n_restarts": 0, "n_trees": 10, "n_neighbors": 20}
_QUICK_PRETRAINING = 2
# Of what settings files leave out, whatever the network's own defaults are.
_DEFAULTS: dict[str, Any] = {
    "epochs": 200,
    "batch_size": 128,
    "learning_rate": 2e-3,
    "schedule": CosineSchedule(),
    "validation_share": 0.15,
}
# Settings that were renamed: stored rows have hashes with the old names.
_OLD_NAMES = {"off_support": "caution"}
#: Settings of a class that are not a method's to set: the grid sets them.
_FROM_THE_GRID = {"problem", "predictor", "network", "training", "random_state", "n_scenarios"}


@dataclass(frozen=True)
class Method:
    """A method as it is in one experiment, with all its settings.

    `learner` and `predictor` have a `kind` and that class's settings, `training` those of
    `forewise.Training`. `hidden_sizes` are those of the networks, `keep` ("best" or "last") is the
    epoch whose weights are kept, `m` the scenarios per decision if not the experiment's.
    """

    name: str
    title: str
    learner: dict[str, Any]
    predictor: dict[str, Any]
    hidden_sizes: tuple[int, ...]
    training: dict[str, Any]
    keep: str
    m: tuple[int, ...] | None

    @classmethod
    def from_table(cls, name: str, table: Mapping[str, Any]) -> Method:
        predictor = dict(table.get("predictor", {}))
        sizes = predictor.pop("hidden_sizes", table["hidden_sizes"])
        return cls(
            name=name,
            title=table.get("title") or name,
            learner=dict(table.get("learner", {})),
            predictor=predictor,
            hidden_sizes=tuple(sizes),
            training=dict(table.get("training", {})),
            keep=table.get("keep") or "best",
            m=None if table.get("m") is None else tuple(table["m"]),
        )

    def identity(self) -> dict[str, Any]:
        """The settings that decide the results, as plain values for the configuration hash.

        Settings that a method does not use are left out, so that they can change.
        """
        used: dict[str, Any] = {"learner": self.learner}
        if self.learner.get("kind") in _LEARNERS:
            used["predictor"] = _as_hashed(self.predictor)
        if self.is_network:
            used |= {"hidden_sizes": list(self.hidden_sizes), "training": self.training}
            used["keep"] = self.keep
        return used

    @property
    def is_network(self) -> bool:
        kind = self.learner.get("kind")
        return kind == "direct" or (kind in _LEARNERS and self.predictor.get("kind") in NETWORKS)


def _as_hashed(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table of settings under the names that its hash was introduced with."""
    return {
        _OLD_NAMES.get(key, key): _as_hashed(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
    }


@dataclass(frozen=True)
class Task:
    """What a method is fitted for: the problem, the data, M_train, the seed."""

    problem: Problem
    train: Dataset
    validation: Dataset
    test: Dataset
    m_train: int
    seed: int
    solvers: Solvers


class Rule(ABC):
    """Decides for the contexts of a test set, with M scenarios."""

    @abstractmethod
    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        """Decisions (n_contexts, n_decisions); called once for each M."""

    def scenarios(self, X: np.ndarray, m: int, seed: int) -> Scenarios | None:
        """The scenarios of `decide`; None where there are none."""
        return None


@dataclass(frozen=True)
class PolicyRule(Rule):
    """A fitted policy."""

    policy: Policy

    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        return np.asarray(self.policy.decide(X, m, random_state=seed))

    def scenarios(self, X: np.ndarray, m: int, seed: int) -> Scenarios | None:
        if not isinstance(self.policy, ScenarioPolicy):
            return None
        return self.policy.predictor.sample(X, m, random_state=seed)


@dataclass(frozen=True)
class ConstantRule(Rule):
    """The same decision in every context."""

    decision: Any

    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        return np.tile(np.asarray(self.decision, dtype=np.float64), (len(X), 1))


@dataclass(frozen=True)
class OracleRule(Rule):
    """Decides with M draws from the true distribution, others than the oracle's."""

    problem: Problem
    test: Dataset
    seed: int
    solver: Solver

    def scenarios(self, X: np.ndarray, m: int, seed: int) -> Scenarios:
        return self.test.true_scenarios(m, np.random.default_rng([self.seed, m, 1]))

    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        return oracle_decision(self.problem, self.scenarios(X, m, seed), self.solver).numpy()


@dataclass(frozen=True)
class ForesightRule(Rule):
    """Decides for the test rows with their outcomes known: a lower bound of the cost."""

    problem: Problem
    test: Dataset
    solver: Solver

    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        known = Scenarios(self.test.y[:, None])
        return oracle_decision(without_risk(self.problem), known, self.solver).numpy()


def check_method(method: Method) -> None:
    """Raise unless all its kinds and settings exist; their values are checked when fitted."""
    kind = _kind(method.learner, "learner", kinds.LEARNERS)
    if kind in _FIXED:
        _require_keys(method.learner, {"kind", *_FIXED[kind]}, "learner")
        if not _FIXED[kind] <= method.learner.keys():
            raise InvalidInputError(f"learner: {', '.join(_FIXED[kind])} is missing")
        return
    known = {"kind", *_arguments(_LEARNERS[kind])} - {"solver"} - _FROM_THE_GRID
    _require_keys(method.learner, known, "learner")
    _training(method.training)
    _learner(method, None)


def fit_rule(method: Method, task: Task) -> Rule:
    """Fit the method: what decides for the test rows."""
    kind, solver = method.learner["kind"], task.solvers.deciding
    if kind == "constant":
        return ConstantRule(method.learner["decision"])
    if kind == "oracle":
        return OracleRule(task.problem, task.test, task.seed, solver)
    if kind == FORESIGHT:
        return ForesightRule(task.problem, task.test, solver)
    held_out = (task.validation.X, task.validation.y) if method.keep == "best" else (None, None)
    policy = _learner(method, task).fit(task.train.X, task.train.y, *held_out).policy_
    # A policy without scenarios only projects, and keeps its solver.
    return PolicyRule(
        replace(policy, solver=solver) if isinstance(policy, ScenarioPolicy) else policy
    )


def _learner(method: Method, task: Task | None) -> Any:
    """The learner; without a task only to check that all its settings exist."""
    settings = {key: value for key, value in method.learner.items() if key != "kind"}
    kind = method.learner["kind"]
    before: Mapping[str, Any] | None = settings.pop("pretraining", None)
    if kind == "combined":  # cold, as the paper does, unless the method says how to warm up
        settings |= {"pretraining": before is not None, "training": _kept(method)}
    if kind == "combined" and task is not None:
        settings |= {"n_scenarios": task.m_train, "solver": task.solvers.training}
    if kind == "direct":
        _require_keys(method.predictor, {"kind"}, "predictor")
        predictor: Predictor = PointPredictor(method.hidden_sizes, training=_kept(method))
    else:
        predictor = _predictor(method.predictor, "predictor", method, task)
        if before is not None:
            whole = isinstance(predictor, EnsemblePredictor)
            network = cast(Any, predictor).member if whole else predictor
            network.set_params(training=_kept(method, before))
    if task is not None and "random_state" in _arguments(type(predictor)):
        predictor.set_params(random_state=task.seed)
    return _LEARNERS[kind](None if task is None else task.problem, predictor, **settings)


def _predictor(
    table: Mapping[str, Any],
    where: str,
    method: Method,
    task: Task | None,
    known: Collection[str] = kinds.PREDICTORS,
) -> Predictor:
    """The predictor of a table, and those inside it, of one of the `known` kinds."""
    kind = _kind(table, where, known)
    # Draws of the weights in a decoupled step are M_train unless the method has its own.
    own = _FROM_THE_GRID - {"n_scenarios"} | {"hidden_sizes"}
    _require_keys(table, {"kind", *_arguments(kinds.PREDICTORS[kind])} - own, where)
    settings = {key: value for key, value in table.items() if key != "kind"}
    if kind == "ensemble":
        member = settings.get("member", {"kind": "gaussian"})
        members = sorted(NETWORKS - {"ensemble"})
        settings["member"] = _predictor(member, f"{where}.member", method, task, members)
    elif kind in NETWORKS:
        settings |= {"hidden_sizes": method.hidden_sizes, "training": _kept(method)}
    if kind in ("bayesian", "mixture") and task is not None:
        settings.setdefault("n_scenarios", task.m_train)
    weight = settings.get("kl_weight")
    if isinstance(weight, Mapping):
        _require_keys(weight, {"paper"}, f"{where}.kl_weight")
        if kind != "bayesian" or "paper" not in weight:
            raise InvalidInputError(
                f"{where}.kl_weight: must be a number, or {{ paper = K }} for a bayesian one"
            )
        if task is not None:
            settings["kl_weight"] = _translated(weight["paper"], method, task)
    if "encoding" in settings:
        settings["encoding"] = _chosen(table["encoding"], f"{where}.encoding", kinds.ENCODINGS)
    if "off_support" in settings:
        _require_keys(table["off_support"], _arguments(OffSupportFallback), f"{where}.off_support")
        settings["off_support"] = OffSupportFallback(**table["off_support"])
    if "regressor" in settings:
        inner = table["regressor"], f"{where}.regressor"
        settings["regressor"] = _predictor(*inner, method, task, ("boosting",))
    return kinds.PREDICTORS[kind](**settings)


def paper_kl_weight(
    K: float, *, n_rows: int, batch_size: int, n_outcomes: int, n_weights: int, unit: float = 2.0
) -> float:
    """The `kl_weight` that weighs the divergence as the paper's K does.

    The paper minimises ``loss + K · KL / (n_weights · n_batches)``, forewise
    ``loss / unit + kl_weight · KL / (n_rows · n_outcomes)``. They are the same up to `unit` if

        kl_weight = K · n_rows · n_outcomes / (unit · n_weights · n_batches)

    Decoupled, the paper's loss per outcome is twice the negative log-likelihood: `unit` is 2.
    Combined, its loss is the cost, which forewise divides by the regret of ignoring the context:
    that is the `unit` then. `n_weights` are the weights and biases of the network.
    """
    n_batches = math.ceil(n_rows / batch_size)
    return K * n_rows * n_outcomes / (unit * n_weights * n_batches)


def _translated(K: float, method: Method, task: Task) -> float:
    n_outcomes = task.train.n_outcomes
    unit = 2.0
    if method.learner["kind"] == "combined":
        unit = context_free_regret(task.problem, task.train.y, task.solvers.training)
    head = gaussian_head(n_outcomes, method.predictor.get("n_factors", 0))
    layout = Layout((task.train.n_features, *method.hidden_sizes, head.width))
    return paper_kl_weight(
        K,
        n_rows=task.train.n_contexts,
        batch_size=cast(int, _training(method.training).batch_size),
        n_outcomes=n_outcomes,
        n_weights=layout.n_weights,
        unit=unit,
    )


def _kept(method: Method, *changes: Mapping[str, Any]) -> Training:
    """The training; without rows to validate on where the last epoch is to be kept."""
    share = {} if method.keep == "best" else {"validation_share": 0.0}
    return _training(method.training, *changes, share)


def _training(*tables: Mapping[str, Any]) -> Training:
    """Later tables change earlier ones."""
    table = {key: value for one in tables for key, value in one.items()}
    changing_nothing = {"progress", "checkpoint", "on_interrupt"}
    known = {field.name for field in fields(Training)} - changing_nothing
    _require_keys(table, known, "training")
    if "schedule" in table:
        table["schedule"] = _chosen(table["schedule"], "training.schedule", kinds.SCHEDULES)
    return Training(**_DEFAULTS | table)


def _chosen(table: Mapping[str, Any], where: str, known: Mapping[str, type]) -> Any:
    """The object of a table: a `kind`, and that class's settings."""
    chosen = known[_kind(table, where, known)]
    _require_keys(table, {"kind", *_arguments(chosen)}, where)
    return chosen(**{key: value for key, value in table.items() if key != "kind"})


def _kind(table: Mapping[str, Any], where: str, known: Collection[str]) -> str:
    kind = table.get("kind")
    if kind not in known:
        raise InvalidInputError(f"{where}: kind must be one of {', '.join(known)}, but is {kind!r}")
    return str(kind)


def _arguments(kind: type) -> set[str]:
    return set(inspect.signature(kind).parameters)


def _require_keys(table: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidInputError(
                f"{where}: {key} is not a setting of it{hint} (there are "
                f"{', '.join(sorted(known - {'kind'})) or 'none'})"
            )


def quick_method(
    method: Method, epochs: int, hidden_sizes: tuple[int, ...], m: int | None = None
) -> Method:
    """The method with tiny networks, few trees and few neighbours, and `m` scenarios if given."""
    learner, predictor = dict(method.learner), dict(method.predictor)
    if "pretraining" in learner:
        learner["pretraining"] = learner["pretraining"] | {"epochs": _QUICK_PRETRAINING}
    predictor |= {key: value for key, value in _QUICK.items() if key in predictor}
    if "regressor" in predictor:
        predictor["regressor"] = predictor["regressor"] | {"n_trees": _QUICK["n_trees"]}
    return replace(
        method,
        learner=learner,
        predictor=predictor,
        hidden_sizes=hidden_sizes,
        training=method.training | {"epochs": epochs},
        m=method.m if m is None or method.m is None else (m,),
    )
