"""Policies: deciding in pieces, containers, and storing without pickle."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge, TweedieRegressor

import forewise as fw
from forewise.storage import read_folder, write_folder

BRIEF = fw.Training(epochs=2)
BUDGETED = fw.QuadraticNewsvendor(
    [1.0, 2.0], 0.0, 1.0, [9.0, 4.0], 1.0, [1.0, 2.0], price=[1.0, 1.0], budget=4.0
)
PREDICTORS = [
    fw.predictors.MeanFieldPredictor((8,), training=BRIEF, random_state=np.random.RandomState(0)),
    fw.MixturePredictor(2, (8,), training=BRIEF, random_state=0),
    fw.PointPredictor(
        (8,), training=fw.Training(epochs=2, schedule=fw.predictors.ExponentialSchedule())
    ),
    fw.GaussianPredictor((8,), n_factors=1, training=BRIEF, random_state=0),
    fw.EnsemblePredictor(fw.PointPredictor((8,), training=BRIEF), 3, random_state=0),
    fw.EnsemblePredictor(
        fw.predictors.MeanFieldPredictor(
            (8,),
            2,
            encoding=fw.predictors.FourierFeatures(2),
            off_support=fw.predictors.OffSupportFallback(0.5, 1.1),
            training=BRIEF,
        ),
        2,
        random_state=0,
    ),
    fw.EmpiricalPredictor(),
    fw.NeighborPredictor(),
    fw.ForestPredictor(n_trees=5),
    fw.ResidualPredictor(Ridge()),
    fw.GaussianProcessPredictor(),
    fw.GroupedPredictor(),
    fw.BoostingPredictor(n_trees=5),
    fw.QuantileBoostingPredictor((0.1, 0.5, 0.9), n_trees=5),
    fw.ResidualPredictor(fw.BoostingPredictor(n_trees=5), shuffle=False),
]


def table(n=50, seed=0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 2)), columns=["price", "rain"])
    y = 3 + X.to_numpy() + random.normal(size=(n, 2))
    return X, pd.DataFrame(y, columns=["bread", "rolls"])


def name(value):
    return type(value).__name__


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    return fw.DecoupledLearner(BUDGETED, fw.NeighborPredictor()).fit(X, y)


def test_containers_come_back_as_they_went_in(fitted):
    X, _ = table()
    X.index = [f"day {i}" for i in range(len(X))]
    frame = fitted.decide(X)
    assert list(frame.columns) == ["bread", "rolls"]
    assert list(frame.index) == list(X.index)
    with pytest.warns(UserWarning, match="feature names"):
        array = fitted.decide(X.to_numpy())
    assert isinstance(array, np.ndarray)
    assert np.array_equal(array, frame.to_numpy())


def test_decisions_are_named_by_number_where_outcomes_have_no_names():
    X, y = table()
    learner = fw.DecoupledLearner(BUDGETED, fw.EmpiricalPredictor()).fit(X, y.to_numpy())
    assert list(learner.decide(X).columns) == ["decision_0", "decision_1"]


def test_pieces_give_the_decisions_of_the_whole(fitted):
    """Neighbours are few: so many scenarios only make the pieces small, four rows each."""
    X, _ = table(37, seed=1)
    assert fitted.decide(X, n_scenarios=2**16).equals(fitted.decide(X, n_scenarios=100))


class Broken(fw.NeighborPredictor):
    """Has no forecast where the first feature is 99."""

    def _scenarios(self, X, n_scenarios, random):
        scenarios = super()._scenarios(X, n_scenarios, random)
        values = scenarios.values.clone()
        values[torch.from_numpy(X[:, 0] == 99)] = torch.nan
        return fw.Scenarios(values, scenarios.weights)


def test_failures_are_told_by_row():
    X, _ = table(20, seed=2)
    fitted = fw.DecoupledLearner(BUDGETED, Broken()).fit(*table())
    whole = fitted.decide(X, n_scenarios=2**16).to_numpy()
    X.iloc[13, 0] = 99
    with pytest.raises(fw.SolveError, match=r"1 of 20 contexts.*row 13 is invalid") as caught:
        fitted.decide(X, n_scenarios=2**16)
    left = fitted.decide(X, n_scenarios=2**16, on_failure="return").to_numpy()
    assert np.isnan(left[13]).all()
    others = np.arange(20) != 13
    assert np.array_equal(left[others], whole[others])
    assert np.array_equal(caught.value.solution.to_numpy(), left, equal_nan=True)
    with pytest.raises(fw.InvalidInputError, match="on_failure"):
        fitted.decide(X, on_failure="ignore")


@pytest.mark.parametrize("predictor", PREDICTORS, ids=name)
def test_a_stored_policy_decides_the_same(tmp_path, predictor):
    X, y = table()
    policy = fw.DecoupledLearner(BUDGETED, predictor).fit(X, y).policy_
    policy.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy")
    assert loaded.decide(X).equals(policy.decide(X))
    assert not any(b"pickle" in f.read_bytes() for f in (tmp_path / "policy").iterdir())
    loaded.save(tmp_path / "again")
    assert fw.load_policy(tmp_path / "again").decide(X).equals(policy.decide(X))


@pytest.mark.parametrize(
    ("problem", "solver"),
    [
        (fw.Newsvendor([1.0, 2.0], 9.0), fw.solvers.WeightedQuantileSolver()),
        (fw.Portfolio([1.0, 2.0], 1.0, budget=1.0), fw.InteriorPointSolver(smoothing=0.01)),
        (fw.QuadraticNewsvendor(np.eye(2), 0.0, 1.0, 1.0, 1.0, 1.0), fw.AutoSolver()),
    ],
    ids=name,
)
def test_problems_and_solvers_are_stored(tmp_path, problem, solver):
    X, y = table()
    policy = fw.policy.ScenarioPolicy(problem, fw.EmpiricalPredictor().fit(X, y), solver)
    policy.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy")
    assert loaded.solver == policy.solver
    assert loaded.decide(X[:2]).equals(policy.decide(X[:2]))


def test_a_direct_policy_is_stored(tmp_path):
    X, y = table()
    learner = fw.DirectLearner(BUDGETED, fw.PointPredictor((8,), training=BRIEF)).fit(X, y)
    learner.policy_.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy")
    assert isinstance(loaded, fw.policy.DirectPolicy)
    assert loaded.decide(X).equals(learner.decide(X))


def test_what_cannot_be_stored_says_so(tmp_path):
    X, y = table()
    predictor = fw.ResidualPredictor(TweedieRegressor())
    policy = fw.policy.ScenarioPolicy(BUDGETED, predictor.fit(X, y.abs() + 1))
    with pytest.raises(fw.exceptions.StorageError, match="TweedieRegressor"):
        policy.save(tmp_path / "policy")
    assert not (tmp_path / "policy").exists()


def rewritten(folder, change):
    """Change the header's tree as an attacker would, checksum and all."""
    version, content = read_folder(folder, kind="policy", versions=[3])
    change(content)
    shutil.rmtree(folder)
    write_folder(folder, content, kind="policy", version=version)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["policy"].update({"class": "Popen"}), "Popen.*not registered"),
        (lambda c: c["policy"]["settings"].pop("problem"), "is not valid"),
        (lambda c: c["policy"]["settings"].update({"extra": 1}), "is not valid"),
        (lambda c: c.update({"policy": 3}), "holds no policy"),
        (lambda c: c.pop("policy"), "holds no policy"),
        (
            lambda c: c["policy"]["settings"]["problem"]["settings"].update({"budget": "lots"}),
            "is not valid",
        ),
    ],
)
def test_a_header_that_was_tampered_with_runs_nothing(tmp_path, fitted, change, message):
    fitted.policy_.save(tmp_path / "policy")
    rewritten(tmp_path / "policy", change)
    with pytest.raises(fw.exceptions.StorageError, match=message):
        fw.load_policy(tmp_path / "policy")


def test_a_policy_of_another_version_says_so(tmp_path, fitted):
    fitted.policy_.save(tmp_path / "policy")
    _, content = read_folder(tmp_path / "policy", kind="policy", versions=[3])
    write_folder(tmp_path / "policy", content, kind="policy", version=99)
    with pytest.raises(fw.exceptions.StorageError, match="99"):
        fw.load_policy(tmp_path / "policy")
    with pytest.raises(fw.exceptions.StorageError, match="nowhere"):
        fw.load_policy(tmp_path / "nowhere")


def test_flipped_bits_are_errors(tmp_path, fitted):
    """Of any bit of the arrays, and of the header unless it is white space between its parts."""
    fitted.policy_.save(tmp_path / "policy")
    random = np.random.default_rng(0)
    header, arrays = (next((tmp_path / "policy").glob(kind)) for kind in ("*.json", "arrays*"))
    meaning, errors = json.loads(header.read_text()), 0
    for file in [header, arrays] * 30:
        original = file.read_bytes()
        damaged = bytearray(original)
        damaged[random.integers(len(damaged))] ^= 1 << int(random.integers(8))
        file.write_bytes(bytes(damaged))
        try:
            fw.load_policy(tmp_path / "policy")
            assert file is header
            assert json.loads(header.read_text()) == meaning
        except fw.exceptions.StorageError:
            errors += 1
        file.write_bytes(original)
    assert errors >= 45
