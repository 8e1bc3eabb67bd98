"""Neighbours of a context: those of brute force, with ties."""

from __future__ import annotations

import numpy as np
import pytest

import forewise as fw
from forewise.predictors.neighbor import NeighborPredictor
from tests.predictors.tables import moments, table, values_and_weights


@pytest.mark.parametrize("kernel", ["uniform", "epanechnikov"])
@pytest.mark.parametrize("n_neighbors", [1, 7, 150])
def test_neighbours_are_those_of_brute_force(kernel, n_neighbors):
    X, y = table()
    X = np.column_stack([X * [1, 1000, 0.001], np.full(len(X), 0.1)])
    predictor = NeighborPredictor(n_neighbors, kernel).fit(X, y)
    contexts = np.column_stack([table(12, seed=1)[0] * [1, 1000, 0.001], np.arange(12.0)])
    drawn = predictor.sample(contexts, 150, random_state=0)
    for context, values, weights in zip(contexts, *values_and_weights(drawn), strict=True):
        scaled = ((X - context) / np.where(X.std(0) > 1e-9, X.std(0), np.inf))[:, :3]
        squared = (scaled**2).sum(axis=1)
        nearest = np.argsort(squared)[:n_neighbors]
        expected = np.ones(n_neighbors)
        if kernel == "epanechnikov" and n_neighbors > 1:
            expected = 1 - squared[nearest] / squared[nearest[-1]]
        expected = expected / expected.sum()
        mean, second = expected @ y[nearest], expected @ y[nearest] ** 2
        np.testing.assert_allclose(weights @ values, mean)
        np.testing.assert_allclose(weights @ values**2, second)
        kept = values[weights > 0]
        assert len(kept) == (expected > 0).sum()
        assert {tuple(row) for row in kept} == {tuple(row) for row in y[nearest[expected > 0]]}


def test_all_rows_as_neighbours_are_plain_saa():
    X, y = table(80, n_outcomes=1)
    scenarios = NeighborPredictor(n_neighbors=80).fit(X, y).sample(X[:5], 80)
    order = fw.solve(fw.Newsvendor(shortage=3.0, excess=1.0), scenarios).decision
    np.testing.assert_allclose(order, np.quantile(y, 0.75, method="inverted_cdf"))


def test_contexts_that_tie_share_the_last_place():
    """Weekdays as contexts: every past Monday counts, in whatever order the rows came."""
    day = np.repeat(np.arange(7.0), 20)
    demand = 10 * day + np.tile(np.arange(20.0) / 10, 7)
    predictor = NeighborPredictor(n_neighbors=8).fit(day[:, None], demand)
    values, weights = values_and_weights(predictor.sample([[3.0]], 100))
    monday = weights[0] > 0
    np.testing.assert_allclose(np.sort(values[0, monday, 0]), demand[day == 3])
    np.testing.assert_allclose(weights[0, monday], 1 / 20)
    # Half-way between two days: two sets of rows tie, more than a context may have.
    values, weights = values_and_weights(predictor.sample([[3.5]], 100, random_state=0))
    assert predictor.n_support_ == values.shape[1] == 27
    assert abs(weights[0] @ (values[0, :, 0] >= 40) - 0.5) <= 1 / 27
    epanechnikov = NeighborPredictor(8, "epanechnikov").fit(day[:, None], demand)
    mean = moments(epanechnikov.sample([[3.0]], 100))[0]
    np.testing.assert_allclose(mean, demand[day == 3].mean())


def test_default_number_of_neighbours():
    assert NeighborPredictor().fit(*table(150)).n_neighbors_ == 12
    assert NeighborPredictor().fit(*table(1)).n_neighbors_ == 1
