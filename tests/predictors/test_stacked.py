"""A union of scenarios is the mixture that its weights say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import forewise as fw
from forewise.predictors.stacked import scenario_shares
from tests.predictors.tables import table

PARTS = [fw.EmpiricalPredictor(), fw.NeighborPredictor(5)]


def test_a_part_has_the_weight_it_was_given():
    X, y = table(40, 1)
    union = fw.StackedPredictor(PARTS, weights=(3.0, 1.0)).fit(X, y)
    parts = [part.fit(X, y).sample(X, 64) for part in union.parts_]
    means = [(part.weights[..., None] * part.values).sum(1) for part in parts]
    drawn = union.sample(X, 64)
    mixed = (drawn.weights[..., None] * drawn.values).sum(1)
    # All past outcomes and all neighbours are among 64: the union is exact.
    np.testing.assert_allclose(mixed, 0.75 * means[0] + 0.25 * means[1])


def test_one_part_alone_is_that_part():
    X, y = table(40, 2)
    alone = fw.NeighborPredictor(5).fit(X, y).sample(X, 64)
    for union in (
        fw.StackedPredictor(PARTS[1:]),
        fw.StackedPredictor(PARTS, (0.0, 2.0)),
    ):
        drawn = union.fit(X, y).sample(X, 64)
        np.testing.assert_array_equal(drawn.values, alone.values)
        np.testing.assert_allclose(drawn.weights, alone.weights)


def test_scenarios_are_shared_out_by_weight():
    weights = np.array([0.5, 0.3, 0.0, 0.2])
    assert scenario_shares(weights, 64).tolist() == [32, 19, 0, 13]
    assert scenario_shares(weights, 3).tolist() == [1, 1, 0, 1]
    assert scenario_shares(weights, 2).tolist() == [1, 1, 0, 0]
    assert scenario_shares(weights, 1).tolist() == [1, 0, 0, 0]
    for count in range(1, 40):
        assert scenario_shares(weights, count).sum() == count


def test_parts_see_the_names_of_columns():
    X, y = table(40, 1)
    frame = pd.DataFrame({"shop": np.arange(40) % 4, "price": X[:, 0]})
    union = fw.StackedPredictor([fw.GroupedPredictor("shop"), fw.EmpiricalPredictor()])
    assert union.fit(frame, y).sample(frame, 8).n_scenarios == 8


def test_it_warns_of_extrapolation_if_a_part_does():
    X, y = table(60, 1)
    network = fw.GaussianPredictor((4,), training=fw.Training(epochs=1), random_state=0)
    far = X.max(axis=0, keepdims=True) * 10
    union = fw.StackedPredictor([fw.EmpiricalPredictor(), network]).fit(X, y)
    assert union.extrapolates(far).all()
    assert not fw.StackedPredictor(union.predictors, (1, 0)).fit(X, y).extrapolates(far).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "predictors must be a list"),
        ((fw.EmpiricalPredictor(),), "predictors must be a list"),
        (([fw.EmpiricalPredictor],), "each of predictors must be"),
        ((PARTS, (1.0,)), "weights must be"),
        ((PARTS, (0.0, 0.0)), "weights must not all be zero"),
        ((PARTS, (1.0, -1.0)), "weights must be at least 0"),
    ],
)
def test_wrong_arguments_are_reported(arguments, message):
    with pytest.raises(fw.ForewiseError, match=message):
        fw.StackedPredictor(*arguments).fit(*table(40, 1))


def test_a_union_of_fitted_predictors_knows_the_texts_of_their_table():
    X = pd.DataFrame({"day": ["Mon", "Tue", "Sat"] * 20, "warm": np.arange(60.0)})
    y = np.arange(60.0)
    parts = [fw.NeighborPredictor(8).fit(X, y), fw.ForestPredictor(random_state=0).fit(X, y)]
    union = fw.StackedPredictor.from_fitted(parts, [0.5, 0.5])
    assert union.sample(X.head(3), 8).values.shape == (3, 8, 1)


def test_weights_whose_sum_no_float_holds_are_weights():
    union = fw.StackedPredictor(PARTS, (1e308, 1e308)).fit(*table(40, 1))
    assert union.part_weights_.tolist() == [0.5, 0.5]


def test_a_union_of_what_was_fitted_to_other_tables_is_refused():
    X, y = table(40, 2)
    one, other = (fw.EmpiricalPredictor().fit(X, part) for part in (y, y[:, :1]))
    with pytest.raises(fw.InvalidInputError, match="same table"):
        fw.StackedPredictor.from_fitted([one, other], [1, 1])
    with pytest.raises(NotFittedError):
        fw.StackedPredictor.from_fitted([one, fw.EmpiricalPredictor()], [1, 1])
