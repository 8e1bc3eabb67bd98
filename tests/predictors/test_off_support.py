"""The fallback off the support: typical distances, shares of past outcomes, and that it pays."""

from __future__ import annotations

import numpy as np
import pytest

import forewise as fw
from forewise.predictors import OffSupportFallback
from forewise.predictors.networks.contexts import nearest_distances, with_past_outcomes

FALLBACK = {
    "off_support": OffSupportFallback(),
    "training": fw.Training(epochs=2),
    "random_state": 0,
}
GAUSSIAN = fw.GaussianPredictor((8,), **FALLBACK)


def grid(n=41):
    """Contexts of two columns at even steps, and one outcome that is large on average."""
    X = np.stack([np.linspace(-1, 1, n), np.zeros(n)], axis=1)
    return X, 100 + np.arange(n, dtype=float)[:, None]


def test_the_typical_distance_is_a_quantile_of_those_between_neighbours():
    seen = np.array([[0.0], [1.0], [2.0], [3.0], [10.0]])  # nearest: 1, 1, 1, 1, 7
    assert OffSupportFallback(quantile=0.5).typical_distance(seen) == 1.0
    assert OffSupportFallback(quantile=1.0).typical_distance(seen) == 7.0
    assert OffSupportFallback().typical_distance(seen[:1]) == 0.0


def test_nearest_distances_whatever_the_size_of_the_pieces():
    random = np.random.default_rng(0)
    contexts, seen = random.normal(size=(300, 3)), random.normal(size=(5000, 3))
    direct = np.sqrt(((contexts[:, None] - seen) ** 2).sum(-1)).min(1)
    np.testing.assert_allclose(nearest_distances(contexts, seen), direct)


def test_where_contexts_repeat_any_other_is_off_the_support():
    seen = np.repeat([[0.0], [1.0]], 50, axis=0)
    fallback = OffSupportFallback()
    shares = fallback.shares(np.array([0.0, 0.1]), fallback.typical_distance(seen))
    np.testing.assert_array_equal(shares, [0.0, 1.0])


def test_past_outcomes_have_their_share_and_stand_for_all():
    shares = OffSupportFallback(reach=3.0).shares(np.array([0.5, 1.0, 2.0, 7.0]), 1.0)
    np.testing.assert_array_equal(shares, [0.0, 0.0, 0.5, 1.0])
    values = np.zeros((4, 10, 1))
    past = np.arange(1.0, 1001.0)[:, None]
    mixed = with_past_outcomes(values, shares, past, start=0.5)
    np.testing.assert_array_equal((mixed > 0).sum(axis=(1, 2)), [0, 0, 5, 10])
    assert (values == 0).all()
    np.testing.assert_allclose(mixed[3].mean(), past.mean(), rtol=0.01)
    np.testing.assert_allclose(mixed[2].sum() / 5, past.mean(), rtol=0.01)


@pytest.mark.parametrize(
    "predictor",
    [
        GAUSSIAN,
        fw.predictors.MeanFieldPredictor((8,), 2, **FALLBACK),
        fw.MixturePredictor(2, (8,), 2, **FALLBACK),
        fw.EnsemblePredictor(GAUSSIAN, 2, random_state=0),
    ],
)
def test_far_away_all_scenarios_are_past_outcomes_and_nearby_none_is(predictor):
    X, y = grid()
    predictor.fit(X, y)
    near, far = X[20:21] + np.array([0.001, 0.0]), np.array([[50.0, 0.0]])
    contexts = np.concatenate([near, far])
    np.testing.assert_array_equal(predictor.fallback_share(contexts), [0.0, 1.0])
    drawn = predictor.sample(contexts, 32, random_state=0).values.numpy()
    assert np.isin(drawn[1], y).all()
    assert not np.isin(drawn[0], y).any()
    # A column that never changed does not make a context new.
    np.testing.assert_array_equal(predictor.fallback_share(X[:3] + np.array([0.0, 9.0])), 0.0)


def test_it_changes_nothing_near_the_data():
    X, y = grid()
    plain = fw.GaussianPredictor((8,), **FALLBACK | {"off_support": None}).fit(X, y)
    before, after = (p.sample(X, 16, random_state=1).values for p in (plain, GAUSSIAN.fit(X, y)))
    assert (before == after).all()
    np.testing.assert_array_equal(plain.fallback_share(X), 0.0)


def test_far_from_the_data_it_is_cheaper_where_a_wrong_forecast_is_dear():
    """A line that turns round just beyond the data: a network goes on, the past does not."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 1, (300, 1))
    y = 10 + 40 * X + random.normal(size=(300, 1))
    beyond = np.linspace(1.3, 1.48, 50)[:, None]
    truth = 50 - 40 * (beyond - 1)
    problem = fw.Newsvendor(shortage=1.0, excess=9.0)

    def cost(off_support):
        training = fw.Training(epochs=60, learning_rate=5e-3)
        member = fw.GaussianPredictor(
            (32,), off_support=off_support, training=training, random_state=0
        )
        return -fw.DecoupledLearner(problem, member).fit(X, y).score(beyond, truth)

    assert cost(OffSupportFallback()) < 0.5 * cost(None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quantile": 0.0}, "quantile must be"),
        ({"quantile": 1.5}, "quantile must be at most 1, but is 1.5"),
        ({"reach": 1.0}, "reach must be above 1"),
        ({"reach": "far"}, "reach must be .* 'far'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        OffSupportFallback(**settings)
