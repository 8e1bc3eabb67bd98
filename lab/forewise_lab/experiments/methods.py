"""From a method's settings to a fitted rule, which decides for the test rows."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

import forewise as fw
from forewise.datasets import Dataset
from forewise.exceptions import InvalidInputError
from forewise.learners.objectives import context_free_regret
from forewise.policy import ScenarioPolicy
from forewise.predictors import OffSupportFallback
from forewise.predictors.networks.heads import gaussian_head
from forewise.predictors.networks.network import Layout
from forewise.problems.base import without_risk
from forewise_lab.experiments import kinds
from forewise_lab.experiments.kinds import FORESIGHT, NETWORKS, closest

# Of what settings files leave out, whatever the network's own defaults are.
_DEFAULTS: dict[str, Any] = {
    "epochs": 200,
    "batch_size": 128,
    "learning_rate": 2e-3,
    "schedule": fw.predictors.CosineSchedule(),
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
        if self.learner.get("kind") in LEARNERS:
            used["predictor"] = _as_hashed(self.predictor)
        if self.is_network:
            used |= {"hidden_sizes": list(self.hidden_sizes), "training": self.training}
            used["keep"] = self.keep
        return used

    @property
    def is_network(self) -> bool:
        kind = self.learner.get("kind")
        return kind == "direct" or (kind in LEARNERS and self.predictor.get("kind") in NETWORKS)


def _as_hashed(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table of settings under the names that its hash was introduced with."""
    return {
        _OLD_NAMES.get(key, key): _as_hashed(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
    }


@dataclass(frozen=True)
class Task:
    """What a method is fitted for: the problem, the data, M_train, the seed."""

    problem: fw.Problem
    train: Dataset
    validation: Dataset
    test: Dataset
    m_train: int
    seed: int
    solvers: kinds.Solvers


#: From contexts, M and a seed.
Deciding = Callable[[np.ndarray, int, int], np.ndarray]
Drawing = Callable[[np.ndarray, int, int], fw.Scenarios]


@dataclass(frozen=True)
class Rule:
    """Decides for the contexts of a test set, with M scenarios: (n_contexts, n_decisions).

    `scenarios` are those of a decision; None where there are none. `policy` is what was fitted.
    """

    decide: Deciding
    scenarios: Drawing | None = None
    policy: fw.Policy | None = None


def policy_rule(policy: fw.Policy) -> Rule:
    """The rule of a fitted policy."""

    def decide(X: np.ndarray, m: int, seed: int) -> np.ndarray:
        return np.asarray(policy.decide(X, m, random_state=seed))

    if not isinstance(policy, ScenarioPolicy):
        return Rule(decide, policy=policy)
    predictor = policy.predictor
    return Rule(decide, lambda X, m, seed: predictor.sample(X, m, random_state=seed), policy)


def _constant(task: Task, decision: Any) -> Rule:
    """The same decision in every context."""
    one = np.asarray(decision, dtype=np.float64)
    return Rule(lambda X, m, seed: np.tile(one, (len(X), 1)))


def _oracle(task: Task) -> Rule:
    """Decides with M draws from the true distribution, others than the oracle's."""

    def draws(X: np.ndarray, m: int, seed: int) -> fw.Scenarios:
        return task.test.true_scenarios(m, np.random.default_rng([task.seed, m, 1]))

    def decide(X: np.ndarray, m: int, seed: int) -> np.ndarray:
        drawn = draws(X, m, seed)
        return fw.metrics.oracle_decision(task.problem, drawn, task.solvers.deciding).numpy()

    return Rule(decide, draws)


def foresight_rule(task: Task) -> Rule:
    """Decides for the test rows with their outcomes known: a lower bound of the cost."""

    def decide(X: np.ndarray, m: int, seed: int) -> np.ndarray:
        known = fw.Scenarios(task.test.y[:, None])
        problem = without_risk(task.problem)
        return fw.metrics.oracle_decision(problem, known, task.solvers.deciding).numpy()

    return Rule(decide)


LEARNERS: dict[str, type[fw.Learner]] = {
    "decoupled": fw.DecoupledLearner,
    "combined": fw.CombinedLearner,
    "direct": fw.DirectLearner,
}
# What is not learned.
_FIXED: dict[str, Callable[..., Rule]] = {
    "constant": _constant,
    "oracle": _oracle,
    FORESIGHT: foresight_rule,
}


def check_method(method: Method) -> None:
    """Raise unless all its kinds and settings exist; their values are checked when fitted."""
    known: dict[str, Callable[..., Any]] = {**LEARNERS, **_FIXED}
    made, _ = _read(method.learner, "learner", known, {"task", "solver", *_FROM_THE_GRID})
    if made in LEARNERS.values():
        _training(method.training)
        _learner(method, None)


def fit_rule(method: Method, task: Task) -> Rule:
    """Fit the method: what decides for the test rows."""
    kind = method.learner["kind"]
    if kind in _FIXED:
        return _FIXED[kind](task, **{k: v for k, v in method.learner.items() if k != "kind"})
    held_out = (task.validation.X, task.validation.y) if method.keep == "best" else (None, None)
    policy = _learner(method, task).fit(task.train.X, task.train.y, *held_out).policy_
    # A policy without scenarios only projects, and keeps its solver.
    if isinstance(policy, ScenarioPolicy):
        policy = replace(policy, solver=task.solvers.deciding)
    return policy_rule(policy)


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
        predictor: fw.Predictor = fw.PointPredictor(method.hidden_sizes, training=_kept(method))
    else:
        predictor = _predictor(method.predictor, "predictor", method, task, kinds.PREDICTORS)
        if before is not None:
            whole = isinstance(predictor, fw.EnsemblePredictor)
            network = cast(Any, predictor).member if whole else predictor
            network.set_params(training=_kept(method, before))
    if task is not None and "random_state" in predictor.get_params(deep=False):
        predictor.set_params(random_state=task.seed)
    problem: Any = None if task is None else task.problem
    return LEARNERS[kind](problem, predictor, **settings)


def _predictor(
    table: Mapping[str, Any],
    where: str,
    method: Method,
    task: Task | None,
    known: Mapping[str, type[fw.Predictor]],
) -> fw.Predictor:
    """The predictor of a table, and those inside it, of one of the `known` kinds."""
    # Draws of the weights in a decoupled step are M_train unless the method has its own.
    made, settings = _read(table, where, known, _FROM_THE_GRID - {"n_scenarios"} | {"hidden_sizes"})
    kind = table["kind"]
    if kind == "ensemble":
        members = {name: kinds.PREDICTORS[name] for name in sorted(NETWORKS - {"ensemble"})}
        member = settings.get("member", {"kind": "gaussian"})
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
        settings["encoding"] = _made(settings["encoding"], f"{where}.encoding", kinds.ENCODINGS)
    if "off_support" in settings:
        whole = {"kind": "fallback"} | settings["off_support"]
        known_one = {"fallback": OffSupportFallback}
        settings["off_support"] = _made(whole, f"{where}.off_support", known_one)
    if "regressor" in settings:
        only = {"boosting": kinds.PREDICTORS["boosting"]}
        inner = settings["regressor"], f"{where}.regressor"
        settings["regressor"] = _predictor(*inner, method, task, only)
    return made(**settings)


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
    n_outcomes, unit = task.train.n_outcomes, 2.0
    if method.learner["kind"] == "combined":
        unit = context_free_regret(task.problem, task.train.y, task.solvers.training)
    head = gaussian_head(n_outcomes, method.predictor.get("n_factors", 0))
    return paper_kl_weight(
        K,
        n_rows=task.train.n_contexts,
        batch_size=cast(int, _training(method.training).batch_size),
        n_outcomes=n_outcomes,
        n_weights=Layout((task.train.n_features, *method.hidden_sizes, head.width)).n_weights,
        unit=unit,
    )


def _kept(method: Method, *changes: Mapping[str, Any]) -> fw.Training:
    """The training; without rows to validate on where the last epoch is to be kept."""
    share = {} if method.keep == "best" else {"validation_share": 0.0}
    return _training(method.training, *changes, share)


def _training(*tables: Mapping[str, Any]) -> fw.Training:
    """Later tables change earlier ones."""
    table = {key: value for one in tables for key, value in one.items()}
    changing_nothing = {"progress", "checkpoint", "on_interrupt"}
    known = {field.name for field in fields(fw.Training)} - changing_nothing
    _require_keys(table, known, "training")
    if "schedule" in table:
        table["schedule"] = _made(table["schedule"], "training.schedule", kinds.SCHEDULES)
    return fw.Training(**_DEFAULTS | table)


def _made(table: Mapping[str, Any], where: str, known: Mapping[str, Callable[..., Any]]) -> Any:
    """The object of a table: a `kind`, and that class's settings."""
    made, settings = _read(table, where, known)
    return made(**settings)


def _read(
    table: Mapping[str, Any],
    where: str,
    known: Mapping[str, Callable[..., Any]],
    taken: Collection[str] = (),
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What the `kind` of a table names, and its settings; those `taken` are not the table's."""
    kind: Any = table.get("kind")
    if kind not in known:
        raise InvalidInputError(f"{where}: kind must be one of {', '.join(known)}, but is {kind!r}")
    settings = {key: value for key, value in table.items() if key != "kind"}
    own = [p for name, p in inspect.signature(known[kind]).parameters.items() if name not in taken]
    _require_keys(settings, {parameter.name for parameter in own}, where)
    for parameter in own:
        if parameter.default is parameter.empty and parameter.name not in settings:
            raise InvalidInputError(f"{where}: {parameter.name} is missing")
    return known[kind], settings


def _require_keys(table: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise InvalidInputError(
                f"{where}: {key} is not a setting of it{closest(key, known)} (there are "
                f"{', '.join(sorted(known)) or 'none'})"
            )
