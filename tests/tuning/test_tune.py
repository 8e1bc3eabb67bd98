"""Tuning: the default is beaten or kept, and neither workers nor kills change what is found."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import forewise as fw
from forewise.exceptions import InvalidInputError, MissingDependencyError, StorageError
from forewise.parallel import Processes
from forewise.tuning import Between, OneOf, Search, TunedLearner, default_space

pytest.importorskip("optuna", reason="tuning needs Optuna: pip install 'forewise[tune]'")
PROBLEM = fw.Newsvendor(3, 1)
FEW = {"n_trials": 14, "n_folds": 3, "n_scenarios": 16}


def table(n_rows: int = 150) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    return X, rng.gamma(4.0, np.exp(0.4 * X[:, :1]))


def found(**search):
    return fw.tune(PROBLEM, *table(), fw.NeighborPredictor(), **(FEW | search))


def untimed(tuning):
    return tuning.trials.drop(columns="seconds")


@pytest.fixture(scope="module")
def serial():
    return found()


def test_no_worse_than_the_default_and_refitted_to_all_rows(serial):
    trials = serial.trials
    assert len(trials) == FEW["n_trials"]
    assert trials["n_neighbors"].isna().tolist() == [True] + [False] * (len(trials) - 1)
    assert serial.best_cost <= serial.default_cost
    assert (trials["state"] == "pruned").any()
    assert (trials["folds"][trials["state"] == "complete"] == 3).all()
    assert (trials["folds"][trials["state"] == "pruned"] < 3).all()
    X, y = table()
    again = fw.DecoupledLearner(PROBLEM, serial.best_predictor).fit(X, y)
    np.testing.assert_array_equal(serial.policy.decide(X), again.decide(X))
    assert f"{len(trials)} trials" in serial.verdict


def test_costs_are_those_of_an_independent_cross_validation(serial):
    X, y = table()
    held = []
    from forewise.learners.out_of_fold import make_folds

    for fold in make_folds(len(X), 3, False, 0, 2000):
        learner = fw.DecoupledLearner(PROBLEM, serial.best_predictor)
        learner.fit(X[fold.train], y[fold.train])
        scenarios = learner.policy_.predictor.sample_checked(X[fold.held], 16, 0)
        decision = fw.solve(PROBLEM, scenarios).decision
        held.append(PROBLEM.cost(decision, y[fold.held]).numpy())
    assert serial.best_cost == pytest.approx(np.concatenate(held).mean(), rel=1e-12)


@dataclass(frozen=True)
class Interrupted(Processes):
    """Is stopped after so many tasks, as by a kill."""

    after: int = 0
    done: ClassVar[list[int]] = []

    def numbered(self, function, tasks):
        for number, result in super().numbered(function, tasks):
            if len(self.done) == self.after:
                raise KeyboardInterrupt
            self.done.append(number)
            yield number, result


@pytest.mark.parametrize("after", [0, 2, 5, 13, 21])
def test_a_search_that_was_stopped_ends_as_undisturbed(serial, tmp_path, after):
    storage = tmp_path / "search.journal"
    Interrupted.done.clear()
    with pytest.raises(KeyboardInterrupt):
        found(storage=storage, map=Interrupted(after=after))
    assert untimed(found(storage=storage)).equals(untimed(serial))
    assert [path.name for path in tmp_path.iterdir()] == ["search.journal"]


def test_a_finished_search_fits_the_best_alone(serial, tmp_path):
    storage = tmp_path / "search.journal"
    found(storage=storage)
    Interrupted.done.clear()
    assert untimed(found(storage=storage, map=Interrupted(after=99))).equals(untimed(serial))
    assert len(Interrupted.done) == FEW["n_folds"]  # of the best, for `held_out_`


def test_another_search_is_refused(tmp_path):
    storage = tmp_path / "search.journal"
    found(storage=storage, n_trials=1)
    with pytest.raises(StorageError, match="differs in the search"):
        found(storage=storage, n_scenarios=8)
    with pytest.raises(StorageError, match="differs in the table"):
        fw.tune(PROBLEM, *table(140), fw.NeighborPredictor(), **(FEW | {"storage": storage}))
    with pytest.raises(StorageError, match="in a folder that exists"):
        found(storage=tmp_path / "no" / "search.journal")


def test_settings_of_parts_and_values_of_any_kind():
    space = {
        "training__epochs": Between(1, 3),
        "hidden_sizes": OneOf((4,), (8, 4)),
        "training__schedule": OneOf(None, fw.predictors.CosineSchedule()),
    }
    tuning = fw.tune(PROBLEM, *table(), fw.GaussianPredictor(), space, n_trials=4, n_folds=2)
    made = tuning.trials.iloc[1:]
    assert set(made["hidden_sizes"]) <= {(4,), (8, 4)}
    assert set(made["training__epochs"]) <= {1, 2, 3}
    assert (made["state"] == "complete").all(), made["note"]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"depth": Between(1, 3)}, "'depth' is none of"),
        ({"n_neighbors": 5}, r"space\['n_neighbors'\] must be Between"),
        ({"kernel__width": Between(1, 2)}, "has no 'width'"),
        ({}, "space must be a dict"),
    ],
)
def test_spaces_are_checked(space, message):
    with pytest.raises(InvalidInputError, match=message):
        fw.tune(PROBLEM, *table(), fw.NeighborPredictor(), space, **FEW)


def test_ranges_are_checked():
    for wrong in ((3, 3), (0.0, 1.0, True)):
        with pytest.raises(InvalidInputError, match="low must be below high"):
            Between(*wrong)
    with pytest.raises(InvalidInputError, match="several different values"):
        OneOf(1, 1)
    with pytest.raises(InvalidInputError, match="space must be given for a EmpiricalPredictor"):
        default_space(fw.EmpiricalPredictor())


def test_trials_that_fail_are_told_and_the_others_go_on():
    space = {"n_neighbors": Between(90, 120)}  # of 100 rows
    tuning = fw.tune(PROBLEM, *table(), fw.NeighborPredictor(), space, **FEW)
    failed = tuning.trials[tuning.trials["state"] == "failed"]
    assert len(failed)
    assert failed["note"].str.contains("at most the number of training rows").all()


def test_a_planner_tunes_within_its_roles():
    days = fw.datasets.shop_demand(60)
    search = Search(n_trials=5, n_folds=2, n_scenarios=16, ordered=True)
    planner = fw.Planner(
        PROBLEM,
        outcome="sales",
        date="date",
        series=["store", "product"],
        known=["price"],
        learner=TunedLearner(PROBLEM, fw.NeighborPredictor(), search=search),
    )
    planner.fit(days)
    tuning = planner.learner_.tuning_
    assert set(tuning.trials.columns) >= {"predictor__n_neighbors", "predictor__kernel"}
    assert tuning.best_cost <= tuning.default_cost


def test_the_picture_has_the_numbers_of_the_search(serial):
    display = fw.plots.TuningDisplay.from_tuning(serial).plot()
    assert (np.diff(display.best) <= 0).all()
    assert display.best[-1] == pytest.approx(serial.best_cost)
    drawn = display.ax_.lines[-1].get_ydata()
    np.testing.assert_array_equal(drawn, display.best)


def test_without_optuna_it_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'forewise\[tune\]'"):
        found()


@pytest.mark.slow
def test_two_processes_find_the_same(serial):
    assert untimed(found(map=Processes(2))).equals(untimed(serial))


RAY = """
import os, sys
os.environ["RAY_AUTH_MODE"] = "disabled"
from forewise.parallel import RayMap
from tests.tuning.test_tune import found, untimed
assert untimed(found(map=RayMap(2))).equals(untimed(found()))
"""


@pytest.mark.slow
def test_two_ray_workers_find_the_same():
    pytest.importorskip("ray")
    subprocess.run([sys.executable, "-c", RAY], check=True, timeout=200)


KILLED = """
import sys
from tests.tuning.test_tune import found
found(storage=sys.argv[1])
"""


@pytest.mark.slow
def test_a_search_that_is_killed_at_random_moments_ends_as_undisturbed(serial, tmp_path):
    storage, rng = tmp_path / "search.journal", random.Random(0)
    call = [sys.executable, "-c", KILLED, str(storage)]
    for _ in range(8):
        started = subprocess.Popen(call)
        while started.poll() is None and not storage.exists():
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
    assert untimed(found(storage=storage)).equals(untimed(serial))
    assert not list(Path(tmp_path).glob("*.owner"))
