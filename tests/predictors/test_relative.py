"""Outcomes as multiples of a level."""

from __future__ import annotations

import numpy as np
import pytest

import forewise as fw
from forewise.predictors import RelativePredictor


def table(n_rows=200, scale=1.0):
    """Outcomes that are a level times noise of its own distribution; column 1 has log level."""
    random = np.random.default_rng(0)
    level = scale * random.choice([1.0, 10.0, 1000.0], n_rows)
    X = np.c_[random.normal(size=n_rows), np.log(level)]
    return X, level * random.gamma(9.0, 1 / 9, n_rows)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_one_distribution_serves_series_of_all_sizes(scale):
    X, y = table(scale=scale)
    scenarios = RelativePredictor(fw.EmpiricalPredictor(), [1]).fit(X, y).sample(X, 64, 0)
    relative = scenarios.values.numpy()[..., 0] / np.exp(X[:, 1:])
    np.testing.assert_allclose(relative, relative[:1].repeat(len(X), 0), rtol=1e-12)
    assert relative.mean() == pytest.approx(1.0, abs=0.1)


def test_levels_are_numbers_of_columns():
    X, y = table()
    for levels in ([2], [-1], [0, 1], ["price"]):
        with pytest.raises(fw.InvalidInputError, match="level"):
            RelativePredictor(fw.EmpiricalPredictor(), levels).fit(X, y)


def test_it_is_stored_with_what_is_inside(tmp_path):
    X, y = table()
    learner = fw.DecoupledLearner(
        fw.Newsvendor(shortage=3, excess=1), RelativePredictor(fw.NeighborPredictor(), [1])
    ).fit(X, y)
    learner.policy_.save(tmp_path / "policy")
    read = fw.load_policy(tmp_path / "policy")
    assert np.array_equal(read.decide(X), learner.decide(X))
