"""From a method's settings to a fitted rule."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from forewise.datasets import Dataset
from forewise.exceptions import InvalidInputError
from forewise.learners import CombinedLearner, DecoupledLearner, DirectLearner
from forewise.learners.objectives import context_free_regret
from forewise.policy import Policy, ScenarioPolicy
from forewise.predictors import OffSupportFallback, PointPredictor, Predictor, Training
from forewise.predictors.networks.heads import gaussian_head
from forewise.predictors.networks.network import Layout
from forewise.problems import Problem
from forewise.solvers import Solver
from forewise_lab.experiments.kinds import (
    ENCODINGS,
    FORESIGHT,
    LEARNERS,
    NETWORKS,
    PREDICTORS,
    SCHEDULES,
    Solvers,
)
from forewise_lab.experiments.rules import ConstantRule, ForesightRule, OracleRule, PolicyRule, Rule

# Of the quick version, which only has to run.
_QUICK = {"n_restarts": 0, "n_trees": 10, "n_neighbors": 20}
_QUICK_PRETRAINING = 2
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
        """The method of a merged table."""
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
        if self.learner.get("kind") in ("decoupled", "combined", "direct"):
            used["predictor"] = _as_hashed(self.predictor)
        if self.is_network:
            used |= {
                "hidden_sizes": list(self.hidden_sizes),
                "training": self.training,
                "keep": self.keep,
            }
        return used

    @property
    def is_network(self) -> bool:
        """Whether a network is trained."""
        kind = self.learner.get("kind")
        return kind == "direct" or (
            kind in ("decoupled", "combined") and self.predictor.get("kind") in NETWORKS
        )


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


def check_method(method: Method) -> None:
    """Raise unless all its kinds and settings exist; their values are checked when fitted."""
    kind = _kind(method.learner, "learner", LEARNERS)
    if kind == "constant":
        _require_keys(method.learner, {"kind", "decision"}, "learner")
        if "decision" not in method.learner:
            raise InvalidInputError("learner: decision is missing, for a constant one")
        return
    if kind in ("oracle", FORESIGHT):
        _require_keys(method.learner, {"kind"}, "learner")
        return
    learner = {"decoupled": DecoupledLearner, "combined": CombinedLearner, "direct": DirectLearner}
    known = {"kind", *_arguments(learner[kind])} - {"solver"} - _FROM_THE_GRID
    _require_keys(method.learner, known, "learner")
    if kind == "direct":
        _require_keys(method.predictor, {"kind"}, "predictor")
    else:
        _check_predictor(method.predictor, "predictor")
    _training(method.training)
    if "pretraining" in method.learner:
        _training(method.training, method.learner["pretraining"])


def fit_rule(method: Method, task: Task) -> Rule:
    """Fit the method: what decides for the test rows."""
    kind = method.learner["kind"]
    if kind == "constant":
        return ConstantRule(method.learner["decision"])
    if kind == "oracle":
        return OracleRule(task.problem, task.test, task.seed, task.solvers.deciding)
    if kind == FORESIGHT:
        return ForesightRule(task.problem, task.test, task.solvers.deciding)
    settings = {key: value for key, value in method.learner.items() if key != "kind"}
    learner: Any
    if kind == "direct":
        network = PointPredictor(
            hidden_sizes=method.hidden_sizes, training=_kept(method), random_state=task.seed
        )
        learner = DirectLearner(task.problem, network, **settings)
    elif kind == "combined":
        if "pretraining" in settings:
            settings["pretraining"] = _training(method.training, settings["pretraining"])
        predictor = _predictor(method, task)
        settings |= {"n_scenarios": task.m_train, "solver": task.solvers.training}
        learner = CombinedLearner(task.problem, predictor, **settings)
    else:
        learner = DecoupledLearner(task.problem, _predictor(method, task), **settings)
    held_out = (task.validation.X, task.validation.y) if method.keep == "best" else (None, None)
    learner.fit(task.train.X, task.train.y, *held_out)
    return PolicyRule(_decided_by(task.solvers.deciding, learner.policy_))


def _decided_by(solver: Solver, policy: Policy) -> Policy:
    """The policy with another solver; one without scenarios only projects, and stays."""
    return replace(policy, solver=solver) if isinstance(policy, ScenarioPolicy) else policy


def _predictor(method: Method, task: Task) -> Predictor:
    predictor = _made(method.predictor, method, task)
    if "random_state" in _arguments(type(predictor)):
        predictor.set_params(random_state=task.seed)
    return predictor


def _made(table: Mapping[str, Any], method: Method, task: Task) -> Predictor:
    """The predictor of a table, and those inside it."""
    settings = dict(table)
    kind = settings.pop("kind")
    if kind == "ensemble":
        settings["member"] = _made(settings.get("member", {"kind": "gaussian"}), method, task)
    elif kind in NETWORKS:
        settings |= {"hidden_sizes": method.hidden_sizes, "training": _kept(method)}
    if kind in ("bayesian", "mixture"):
        settings.setdefault("n_scenarios", task.m_train)
        if isinstance(settings.get("kl_weight"), Mapping):
            settings["kl_weight"] = _translated(settings["kl_weight"]["paper"], method, task)
    if "encoding" in settings:
        settings["encoding"] = _chosen(settings["encoding"], "predictor.encoding", ENCODINGS)
    if "off_support" in settings:
        settings["off_support"] = _off_support(settings["off_support"], "predictor.off_support")
    if "regressor" in settings:
        settings["regressor"] = _made(settings["regressor"], method, task)
    return PREDICTORS[kind](**settings)


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

    Examples
    --------
    The decoupled newsvendor, with the authors' own network (64, 32, 32): far below 1.

    >>> weight = paper_kl_weight(1.0, n_rows=1800, batch_size=32, n_outcomes=1, n_weights=3330)
    >>> round(weight, 4)
    0.0047
    """
    n_batches = math.ceil(n_rows / batch_size)
    return K * n_rows * n_outcomes / (unit * n_weights * n_batches)


def _translated(K: float, method: Method, task: Task) -> float:
    """The paper's K as a `kl_weight`, for this network and these rows."""
    n_outcomes = task.train.n_outcomes
    unit = 2.0
    if method.learner["kind"] == "combined":
        unit = context_free_regret(task.problem, task.train.y, task.solvers.training)
    head = gaussian_head(n_outcomes, method.predictor.get("n_factors", 0))
    layout = Layout((task.train.n_features, *method.hidden_sizes, head.width))
    return paper_kl_weight(
        K,
        n_rows=task.train.n_contexts,
        batch_size=_training(method.training).batch_size,
        n_outcomes=n_outcomes,
        n_weights=layout.n_weights,
        unit=unit,
    )


def _kept(method: Method) -> Training:
    """The training; without rows to validate on where the last epoch is to be kept."""
    return _training(method.training, {} if method.keep == "best" else {"validation_share": 0.0})


def _training(*tables: Mapping[str, Any]) -> Training:
    """Later tables change earlier ones."""
    table = {key: value for one in tables for key, value in one.items()}
    changing_nothing = {"progress", "checkpoint", "on_interrupt"}
    known = {field.name for field in fields(Training)} - changing_nothing
    _require_keys(table, known, "training")
    if "schedule" in table:
        table["schedule"] = _chosen(table["schedule"], "training.schedule", SCHEDULES)
    return Training(**table)


def _chosen(table: Mapping[str, Any], where: str, known: Mapping[str, type]) -> Any:
    """The object of a table: a `kind`, and that class's settings."""
    chosen = known[_kind(table, where, known)]
    _require_keys(table, {"kind", *_arguments(chosen)}, where)
    return chosen(**{key: value for key, value in table.items() if key != "kind"})


def _off_support(table: Mapping[str, Any], where: str) -> OffSupportFallback:
    _require_keys(table, _arguments(OffSupportFallback), where)
    return OffSupportFallback(**table)


def _check_predictor(table: Mapping[str, Any], where: str) -> None:
    kind = _kind(table, where, PREDICTORS)
    # Draws of the weights in a decoupled step are M_train unless the method has its own.
    own = _FROM_THE_GRID - {"n_scenarios"} | {"hidden_sizes"}
    known = {"kind", *_arguments(PREDICTORS[kind])} - own
    _require_keys(table, known, where)
    if "encoding" in table:
        _chosen(table["encoding"], f"{where}.encoding", ENCODINGS)
    if "off_support" in table:
        _off_support(table["off_support"], f"{where}.off_support")
    if kind == "ensemble" and "member" in table:
        _kind(table["member"], f"{where}.member", sorted(NETWORKS - {"ensemble"}))
        _check_predictor(table["member"], f"{where}.member")
    if "regressor" in table:
        _kind(table["regressor"], f"{where}.regressor", ("boosting",))
        _check_predictor(table["regressor"], f"{where}.regressor")
    weight = table.get("kl_weight")
    if isinstance(weight, Mapping):
        _require_keys(weight, {"paper"}, f"{where}.kl_weight")
        if kind != "bayesian" or "paper" not in weight:
            raise InvalidInputError(
                f"{where}.kl_weight: must be a number, or {{ paper = K }} for a bayesian one"
            )


def _kind(table: Mapping[str, Any], where: str, known: Any) -> str:
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
