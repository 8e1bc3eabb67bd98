"""Classes of others are stored once they are registered; no file makes any other object."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.exceptions import StorageError

X = np.random.default_rng(0).normal(size=(30, 2))
y = 5 + X[:, :1] + np.random.default_rng(1).normal(size=(30, 1))


@fw.policy.register
class LastRows(fw.Predictor):
    """The outcomes of the last rows, whatever the context."""

    def __init__(self, n_rows=5):
        self.n_rows = n_rows

    def fit(self, X, y):
        self.n_features_in_ = np.shape(X)[1]
        self.n_outcomes_, self.outcome_names_ = np.shape(y)[1], None
        self.last_ = np.asarray(y)[-self.n_rows :]
        return self

    def _scenarios(self, X, n_scenarios, random):
        return fw.Scenarios(np.broadcast_to(self.last_, (len(X), *self.last_.shape)))


@fw.policy.register(name="tests.SquaredError")
@dataclass(frozen=True, repr=False)
class SquaredError(fw.Problem):
    """weight · (z − y)²"""

    weight: float = 1.0
    n_outcomes = 1

    def n_decisions(self, n_outcomes):
        return 1

    def _cost(self, decision, outcome):
        return self.weight * ((decision - outcome) ** 2).sum(-1)

    def _program(self, scenarios):
        one = torch.ones(1, 1, 1, 1, dtype=torch.float64)
        return fw.ScenarioProgram(
            weights=scenarios.weights,
            q=torch.zeros(1, 1, dtype=torch.float64),
            d=torch.zeros(1, 1, 1, dtype=torch.float64),
            D=2 * self.weight * one,
            F=one,
            V=-one,
            s=scenarios.values,
        )


@fw.policy.register
@dataclass(frozen=True, repr=False)
class Renamed(fw.Solver):
    """Asks another solver."""

    inner: fw.Solver

    def unsupported_reason(self, problem):
        return self.inner.unsupported_reason(problem)

    def solve(self, problem, scenarios):
        return self.inner.solve(problem, scenarios)


@fw.policy.register
@dataclass(frozen=True, eq=False, repr=False)
class Doubled(fw.policy.ScenarioPolicy):
    """Draws twice as many scenarios as it is asked for."""

    def _decide(self, problem, X, n_scenarios, seed):
        return super()._decide(problem, X, 2 * n_scenarios, seed)


def test_a_problem_a_predictor_a_solver_and_a_policy_of_others_are_stored(tmp_path):
    solver = Renamed(fw.AutoSolver())
    learner = fw.DecoupledLearner(SquaredError(3.0), LastRows(4), solver=solver).fit(X, y)
    for kind in (fw.policy.ScenarioPolicy, Doubled):
        policy = kind(learner.problem, learner.policy_.predictor, solver)
        policy.save(tmp_path / kind.__name__)
        loaded = fw.load_policy(tmp_path / kind.__name__)
        assert type(loaded) is kind
        assert (loaded.problem, loaded.solver) == (SquaredError(3.0), solver)
        assert np.array_equal(loaded.decide(X), policy.decide(X))
        assert loaded.decide(X)[0] == pytest.approx(y[-4:].mean(), abs=1e-6)
    assert '"tests.SquaredError"' in (tmp_path / "Doubled" / "header.json").read_text()


class LateProblem(fw.Newsvendor):
    """Not registered, until a test does it."""


def test_what_is_not_registered_is_neither_written_nor_made(tmp_path):
    predictor = fw.EmpiricalPredictor().fit(X, y)
    policy = fw.policy.ScenarioPolicy(LateProblem(1, 2), predictor)
    with pytest.raises(StorageError, match=r"policy\.problem is a LateProblem.*register"):
        policy.save(tmp_path / "policy")
    assert not (tmp_path / "policy").exists()
    fw.policy.register(LateProblem)
    policy.save(tmp_path / "policy")
    assert type(fw.load_policy(tmp_path / "policy").problem) is LateProblem


def test_a_class_of_the_same_name_is_another_class(tmp_path):
    other = type("Newsvendor", (fw.Newsvendor,), {})
    policy = fw.policy.ScenarioPolicy(other(1, 2), fw.EmpiricalPredictor().fit(X, y))
    with pytest.raises(StorageError, match=r"policy\.problem is a Newsvendor"):
        policy.save(tmp_path / "policy")
    with pytest.raises(fw.InvalidInputError, match=r"name must not be taken.*forewise\.problems"):
        fw.policy.register(other)


@pytest.mark.parametrize("name", ["list", "dict", "text", "tuple", "", 3])
def test_names_that_a_class_cannot_have(name):
    with pytest.raises(fw.InvalidInputError, match="name must"):
        fw.policy.register(LateProblem, name=name)


def test_only_classes_are_registered():
    with pytest.raises(fw.InvalidInputError, match="cls must be a class"):
        fw.policy.register(fw.Newsvendor(1, 2))


def test_a_class_that_is_defined_anew_takes_its_place():
    """As when a cell of a notebook is run again."""
    again = type("LastRows", (LastRows,), {"__module__": __name__})
    assert fw.policy.register(again) is again
    assert fw.policy.register(LastRows) is LastRows
