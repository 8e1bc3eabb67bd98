"""Decoupled learning solves nothing, unless it is asked to watch the regret."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import forewise as fw
from tests.predictors.interruption import interrupting

PROBLEM = fw.Newsvendor(1.0, 9.0)
EPOCHS = 6


class Refusing(fw.Solver):
    """Cannot be asked anything."""

    def unsupported_reason(self, problem):
        raise AssertionError("the solver was asked")

    def solve(self, problem, scenarios):
        raise AssertionError("the solver was asked")


class Hidden(fw.Newsvendor):
    """A problem that has no program and no cost yet."""

    def program(self, scenarios):
        raise AssertionError("the problem was looked at")

    def cost(self, decision, outcome):
        raise AssertionError("the problem was looked at")


def rows(n=80):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 2))
    return X, 3 + X[:, :1] + random.normal(size=(n, 1))


def network(**settings):
    training = fw.Training(**{"epochs": EPOCHS, "batch_size": 32} | settings)
    return fw.predictors.MeanFieldPredictor((8,), n_scenarios=4, training=training, random_state=0)


def decoupled(monitor=None, solver=None, problem=PROBLEM):
    return fw.DecoupledLearner(problem, network(), solver, monitor)


def weights(learner):
    return learner.policy_.predictor.state()["network_"]


def test_a_decoupled_fit_needs_no_solver():
    fitted = decoupled(solver=Refusing()).fit(*rows())
    assert len(fitted.history_) == EPOCHS
    assert all("regret" not in record for record in fitted.history_)


def test_a_decoupled_fit_does_not_look_at_the_problem():
    fitted = decoupled(problem=Hidden(1.0, 9.0)).fit(*rows())
    assert len(fitted.history_) == EPOCHS


def test_watching_changes_nothing_but_the_history():
    watched = decoupled(fw.learners.RegretMonitor(n_scenarios=8, n_looks=3)).fit(*rows())
    plain = decoupled().fit(*rows())
    assert all((weights(watched)[name] == weights(plain)[name]).all() for name in weights(plain))
    looked = [record["epoch"] for record in watched.history_ if "regret" in record]
    assert looked == [1, 3, 5, 6]
    for record in watched.history_:
        record.pop("regret", None)
    assert watched.history_ == plain.history_
    np.testing.assert_array_equal(watched.decide(rows()[0]), plain.decide(rows()[0]))


def test_a_monitor_that_fails_does_not_end_the_training():
    with pytest.warns(UserWarning, match="RegretMonitor") as caught:
        fitted = decoupled(fw.learners.RegretMonitor(), solver=Refusing()).fit(*rows())
    assert len(caught) == 1
    assert len(fitted.history_) == EPOCHS
    assert all(math.isnan(record["regret"]) for record in fitted.history_)


@pytest.mark.parametrize("settings", [{"n_scenarios": 0}, {"n_looks": 0}, {"n_looks": 1.5}])
def test_bad_settings(settings):
    with pytest.raises(fw.InvalidInputError, match=next(iter(settings))):
        fw.learners.RegretMonitor(**settings)


def test_what_is_no_monitor_is_refused():
    with pytest.raises(fw.InvalidInputError, match="monitor"):
        decoupled(monitor=True).fit(*rows())


def test_a_monitor_has_no_part_in_what_a_checkpoint_is_of(tmp_path, monkeypatch):
    def go(monitor):
        own = network(checkpoint=tmp_path / "checkpoint")
        return fw.DecoupledLearner(PROBLEM, own, monitor=monitor).fit(*rows())

    with monkeypatch.context() as patch:
        interrupting(patch, after=2)
        with pytest.raises(KeyboardInterrupt):
            go(fw.learners.RegretMonitor())
    assert len(go(None).history_) == EPOCHS


OTHERS = {
    "the solver": {"solver": fw.InteriorPointSolver(smoothing=1e-2)},
    "n_scenarios": {"n_scenarios": 5},
    "n_scenarios_deciding": {"n_scenarios_deciding": 16},
    "the problem or what is given": {"problem": fw.Newsvendor(1.0, np.nextafter(9.0, 10.0))},
}


@pytest.mark.parametrize("part", OTHERS)
def test_a_combined_fit_resumes_with_the_same_solver_and_problem_only(tmp_path, monkeypatch, part):
    def go(folder, **changes):
        arguments = {
            "problem": PROBLEM,
            "solver": fw.InteriorPointSolver(),
            "n_scenarios": 4,
        } | changes
        own = network(checkpoint=folder, epochs=3)
        learner = fw.CombinedLearner(predictor=own, pretraining=False, **arguments)
        return learner.fit(*rows())

    folder = tmp_path / "checkpoint"
    with monkeypatch.context() as patch:
        interrupting(patch, after=1)
        with pytest.raises(KeyboardInterrupt):
            go(folder)
    with pytest.raises(fw.exceptions.StorageError, match=f"differs in {part}:"):
        go(folder, **OTHERS[part])
    resumed, undisturbed = go(folder), go(None)
    assert resumed.history_ == undisturbed.history_
    assert all((weights(resumed)[k] == weights(undisturbed)[k]).all() for k in weights(resumed))


def test_pretraining_and_training_have_a_checkpoint_each(tmp_path):
    training = fw.Training(epochs=2, checkpoint=tmp_path)
    predictor = fw.predictors.MeanFieldPredictor((8,), training=training, random_state=0)
    with pytest.raises(fw.InvalidInputError, match="checkpoint"):
        fw.CombinedLearner(PROBLEM, predictor, training=replace(training, epochs=1)).fit(*rows())
