"""Boosted forecasts and quantiles: scikit-learn's own numbers, as arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import forewise as fw
from forewise.exceptions import ForewiseError, InvalidInputError
from tests.predictors import tables
from tests.predictors.tables import drawn_in_two_units

PREDICTORS = [
    fw.BoostingPredictor(n_trees=20, min_leaf=5),
    fw.QuantileBoostingPredictor((0.1, 0.5, 0.9), n_trees=20, min_leaf=5),
    fw.ResidualPredictor(fw.BoostingPredictor(n_trees=20, min_leaf=5), shuffle=False),
]
each_predictor = pytest.mark.parametrize("predictor", PREDICTORS, ids=lambda p: type(p).__name__)


def table(n_rows=400, n_outcomes=2, seed=0):
    """A table in which one of the columns has few values."""
    X, y = tables.table(n_rows, n_outcomes, seed)
    X[:, 1] = np.round(X[:, 1] / 10)
    return X, y


def weighted_quantile(scenarios, level):
    """The decision of a newsvendor with this service level."""
    return fw.solve(fw.Newsvendor(shortage=level, excess=1 - level), scenarios).decision.numpy()


@parametrize_with_checks(
    [fw.BoostingPredictor(n_trees=3), fw.QuantileBoostingPredictor((0.5,), n_trees=3)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_forecasts_are_those_of_scikit_learn():
    X, y = table()
    contexts = np.concatenate([table(100, seed=1)[0], [[1e30, -1e30, 0.0]]])
    predictor = fw.BoostingPredictor(n_trees=30, learning_rate=0.2, max_leaves=8).fit(X, y)
    for outcome in range(2):
        mean, std = y[:, outcome].mean(), y[:, outcome].std()
        twin = HistGradientBoostingRegressor(
            max_iter=30, learning_rate=0.2, max_leaf_nodes=8, early_stopping=False
        ).fit(X, (y[:, outcome] - mean) / std)
        np.testing.assert_allclose(
            predictor.predict(contexts)[:, outcome], mean + std * twin.predict(contexts)
        )
    scenarios = predictor.sample(contexts, 64)
    assert scenarios.values.shape == (101, 1, 2)
    np.testing.assert_array_equal(scenarios.values[:, 0], predictor.predict(contexts))


def test_quantiles_cover_what_they_promise():
    """Noise grows with the first column, which a forecast with one set of errors cannot tell."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 1, (6000, 2))
    y = 10 + X[:, 0] * (4 + random.standard_normal(6000)) * 5
    levels = (0.1, 0.25, 0.5, 0.75, 0.9)
    predictor = fw.QuantileBoostingPredictor(levels, n_trees=60, min_leaf=50).fit(
        X[:4000], y[:4000]
    )
    scenarios = predictor.sample(X[4000:], 64)
    np.testing.assert_allclose(scenarios.weights[0], [0.175, 0.2, 0.25, 0.2, 0.175])
    assert (scenarios.values[:, :, 0].diff(dim=1) >= 0).all(), "quantiles are in order"
    for k, level in enumerate(levels):
        decision = weighted_quantile(scenarios, level)
        np.testing.assert_allclose(decision[:, 0], scenarios.values[:, k, 0], rtol=1e-12)
        for part in (X[4000:, 0] < 0.5, X[4000:, 0] >= 0.5):
            assert (y[4000:] <= decision[:, 0])[part].mean() == pytest.approx(level, abs=0.05)


def test_fewer_scenarios_than_levels_are_picked():
    predictor = fw.QuantileBoostingPredictor(n_trees=3).fit(*table())
    contexts = table(5, seed=1)[0]
    whole = predictor.sample(contexts, 7).values.numpy()
    few = predictor.sample(contexts, 3, random_state=0)
    assert few.values.shape == (5, 3, 2)
    assert np.isin(few.values.numpy(), whole).all()
    assert predictor.sample(contexts, 1000).n_scenarios == 7


def test_default_levels_have_the_usual_service_levels():
    predictor = fw.QuantileBoostingPredictor(n_trees=5).fit(*table(n_outcomes=1))
    scenarios = predictor.sample(table(5, seed=1)[0], 64)
    for level in (0.1, 0.25, 0.5, 0.75, 0.9):
        place = predictor.levels.index(level)
        np.testing.assert_allclose(
            weighted_quantile(scenarios, level)[:, 0], scenarios.values[:, place, 0]
        )


def test_residuals_are_those_of_stretches_of_time():
    """Each fold is forecast from the rows before and after it, never from its own."""
    X, y = table(100, n_outcomes=1)
    regressor = fw.BoostingPredictor(n_trees=10, min_leaf=5)
    found = fw.ResidualPredictor(regressor, n_folds=4, shuffle=False).fit(X, y).residuals_
    errors = []
    for first in range(0, 100, 25):
        fold = np.zeros(100, dtype=bool)
        fold[first : first + 25] = True
        errors += [y[fold] - clone(regressor).fit(X[~fold], y[~fold]).predict(X[fold])]
    np.testing.assert_allclose(np.sort(np.concatenate(errors), axis=0), found)


@each_predictor
def test_state_makes_the_same_predictor(predictor):
    X, y = table()
    fitted = clone(predictor).fit(X, y)
    copy = clone(predictor)
    copy.restore(fitted.state())
    contexts = table(9, seed=1)[0]
    drawn, again = (p.sample(contexts, 8, random_state=0) for p in (fitted, copy))
    assert torch.equal(drawn.values, again.values)
    assert torch.equal(drawn.weights, again.weights)


@pytest.mark.parametrize("predictor", PREDICTORS[:2], ids=lambda p: type(p).__name__)
def test_state_is_arrays_and_numbers(predictor):
    state = clone(predictor).fit(*table()).state()
    assert all(isinstance(value, np.ndarray | int | None) for value in state.values()), list(state)


@each_predictor
def test_stored_policies_decide_the_same(predictor, tmp_path):
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abc"))
    learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), predictor).fit(frame, y)
    learner.policy_.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy").decide(frame[:20])
    assert np.array_equal(loaded, learner.decide(frame[:20]))


@each_predictor
def test_units_of_measure_do_not_matter(predictor):
    plain, moved = drawn_in_two_units(predictor, *table(), table(6, seed=1)[0])
    np.testing.assert_allclose(moved.values, 4 * plain.values - 32, rtol=1e-4)


@each_predictor
@pytest.mark.parametrize("n_rows", [1, 2, 20])
def test_few_rows(predictor, n_rows):
    """A store with 20 rows is forecast by what little there is."""
    X, y = table(n_rows)
    drawn = clone(predictor).fit(X, y).sample(table(5, seed=1)[0], 8, random_state=0).values
    assert drawn.isfinite().all()
    assert y.min() - 100 <= drawn.min()
    assert drawn.max() <= y.max() + 100


@pytest.mark.parametrize(
    ("predictor", "told"),
    [
        (fw.BoostingPredictor(n_trees=0), "n_trees must be a whole number of at least 1, but is 0"),
        (fw.BoostingPredictor(learning_rate=-0.1), "learning_rate must be a finite number above 0"),
        (fw.BoostingPredictor(max_leaves=1), "max_leaves must be a whole number of at least 2"),
        (fw.BoostingPredictor(min_leaf=0), "min_leaf must be a whole number of at least 1"),
        (fw.QuantileBoostingPredictor(()), r"levels must be rising numbers .* but is \(\)"),
        (fw.QuantileBoostingPredictor((0.5, 0.1)), "levels must be rising numbers between 0 and 1"),
        (fw.QuantileBoostingPredictor((0.5, 50)), "levels must be rising numbers between 0 and 1"),
        (fw.QuantileBoostingPredictor(0.5), "levels must be rising numbers between 0 and 1"),
    ],
)
def test_bad_settings_are_refused(predictor, told):
    with pytest.raises(InvalidInputError, match=told):
        predictor.fit(*table(20))


def test_trees_that_are_stored_otherwise_are_noticed(monkeypatch):
    """The arrays come from private parts of scikit-learn: a change there must not go unseen."""
    monkeypatch.setattr(fw.BoostingPredictor, "_outputs", lambda self, X: np.zeros((len(X), 2)))
    with pytest.raises(ForewiseError, match="this version of scikit-learn stores boosted trees"):
        fw.BoostingPredictor(n_trees=2).fit(*table())
