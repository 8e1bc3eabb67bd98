"""Past outcomes by group: SAA per weekday."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.utils.estimator_checks import parametrize_with_checks

import forewise as fw
from forewise.exceptions import InvalidInputError


def weeks(n_rows=140):
    """Demand by weekday; the last weekday has fewer rows."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"rain": random.random(n_rows), "weekday": np.arange(n_rows) % 7})
    demand = 10.0 * frame["weekday"] + random.integers(0, 10, n_rows)
    kept = (frame["weekday"] < 6) | (frame.index < 40)
    return frame[kept], demand[kept].rename("demand")


@parametrize_with_checks([fw.GroupedPredictor(), fw.GroupedPredictor(unseen="pool")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_scenarios_are_the_outcomes_of_the_weekday():
    X, y = weeks()
    predictor = fw.GroupedPredictor(by="weekday").fit(X, y)
    scenarios = predictor.sample(X, 64)
    assert scenarios.values.shape == (len(X), 20, 1)
    for row in range(14):
        present = scenarios.weights[row] > 0
        expected = np.sort(y[X["weekday"] == X["weekday"].iloc[row]])
        np.testing.assert_array_equal(scenarios.values[row, present, 0], expected)
        np.testing.assert_allclose(scenarios.weights[row, present], 1 / len(expected))
    order = fw.solve(fw.Newsvendor(3.0, 1.0), scenarios).decision[:7, 0]
    quantiles = [np.quantile(y[X["weekday"] == d], 0.75, method="inverted_cdf") for d in range(7)]
    np.testing.assert_allclose(order, quantiles)


def test_few_scenarios_are_spread_over_the_group():
    X, y = weeks()
    predictor = fw.GroupedPredictor(by="weekday").fit(X, y)
    few = predictor.sample(X, 5, random_state=1)
    assert few.values.shape == (len(X), 5, 1)
    means = few.values[:7, :, 0].mean(dim=1).numpy()
    np.testing.assert_allclose(means, y.groupby(X["weekday"]).mean(), atol=1.0)
    alone = predictor.sample(X.iloc[3:4], 5, random_state=1)
    assert torch.equal(alone.values, few.values[3:4])


def test_several_columns_by_name_or_number():
    X, y = weeks()
    X = X.assign(shop=np.arange(len(X)) % 2)
    named = fw.GroupedPredictor(by=["shop", "weekday"]).fit(X, y)
    numbered = fw.GroupedPredictor(by=(2, 1)).fit(X, y)
    assert len(named.groups_) == 14
    drawn, again = (p.sample(X, 64).values for p in (named, numbered))
    assert torch.equal(drawn, again)
    mine = (X["shop"] == 1) & (X["weekday"] == 3)
    row = int(np.flatnonzero(mine)[0])
    assert set(drawn[row, :, 0].tolist()) == set(y[mine])


def test_an_unseen_group_is_an_error_or_everything():
    X, y = weeks()
    strange = X.iloc[:3].assign(weekday=[9, 1, 8])
    strict = fw.GroupedPredictor(by="weekday").fit(X, y)
    with pytest.raises(InvalidInputError, match=r"'weekday' that had no row .*: \[8.0\]; \[9.0\]"):
        strict.sample(strange)
    pooled = fw.GroupedPredictor(by="weekday", unseen="pool").fit(X, y)
    drawn = pooled.sample(strange, 500)
    np.testing.assert_array_equal(drawn.values[0, :, 0], np.sort(y))
    known = drawn.weights[1] > 0
    np.testing.assert_array_equal(drawn.values[1, known, 0], np.sort(y[X["weekday"] == 1]))
    # Another product at decide: the learner says it as the predictor does.
    learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.GroupedPredictor("weekday"))
    with pytest.raises(InvalidInputError, match="had no row in training"):
        learner.fit(X, y).decide(strange)


def test_stored_as_arrays(tmp_path):
    X, y = weeks()
    learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.GroupedPredictor(["weekday"], "pool"))
    learner.fit(X, y).policy_.save(tmp_path / "policy")
    assert np.array_equal(fw.load_policy(tmp_path / "policy").decide(X), learner.decide(X))


@pytest.mark.parametrize(
    ("predictor", "told"),
    [
        (fw.GroupedPredictor("month"), "by must name columns of X, but has 'month'; .* rain, week"),
        (fw.GroupedPredictor(2), "by must name columns of X, but has 2"),
        (fw.GroupedPredictor(-1), "by must name columns of X, but has -1"),
        (fw.GroupedPredictor([]), "by must name at least one column, but is empty"),
        (fw.GroupedPredictor("weekday", "zeros"), "unseen must be one of 'raise', 'pool'"),
    ],
)
def test_bad_settings_are_refused(predictor, told):
    with pytest.raises(InvalidInputError, match=told):
        predictor.fit(*weeks())


def test_names_need_a_table_with_names():
    X, y = weeks()
    with pytest.raises(InvalidInputError, match=r"but has 'weekday'; .* numbers 0 to 1, no names"):
        fw.GroupedPredictor("weekday").fit(X.to_numpy(), y)
