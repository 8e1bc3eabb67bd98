"""Scenarios from another model's forecasts: marginals, dependence, and what cannot be done."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, spearmanr
from sklearn.linear_model import LinearRegression, QuantileRegressor

import forewise as fw
from forewise.predictors import DrawForecast, MeanForecast, QuantileForecast
from forewise.testing import check_predictor

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def two_outcomes(n, seed, correlation=0.8):
    """Outcomes N(mean, spread²), correlated given the context, and their true marginals."""
    random = np.random.default_rng(seed)
    mean = random.uniform(5, 20, (n, 2))
    spread = random.uniform(1, 4, (n, 2))
    covariance = [[1, correlation], [correlation, 1]]
    return mean, spread, mean + spread * random.multivariate_normal([0, 0], covariance, n)


def quantiles(mean, spread, levels=LEVELS):
    """Columns of the first outcome, then of the second."""
    found = mean[..., None] + spread[..., None] * norm.ppf(levels)
    return found.reshape(len(mean), -1)


def test_scenarios_of_true_quantiles_have_the_true_distribution():
    mean, spread, y = two_outcomes(4000, 0)
    fitted = fw.ForecastPredictor(QuantileForecast(LEVELS)).fit(quantiles(mean, spread), y)
    mean, spread, _ = two_outcomes(3, 1)
    values = fitted.sample(quantiles(mean, spread), 4000, random_state=0).values.numpy()
    np.testing.assert_allclose(values.mean(1), mean, atol=0.15)
    np.testing.assert_allclose(values.std(1), spread, rtol=0.06)
    for context in values:
        assert np.corrcoef(context.T)[0, 1] == pytest.approx(0.8, abs=0.04)


def test_forecasts_that_are_too_sure_are_corrected_or_believed():
    mean, spread, y = two_outcomes(4000, 0)
    sure = quantiles(mean, spread / 2)
    stds = []
    for calibrated in (True, False):
        predictor = fw.ForecastPredictor(QuantileForecast(LEVELS, calibrated)).fit(sure, y)
        values = predictor.sample(sure[:50], 2000, random_state=0).values.numpy()
        stds.append((values.std(1) / spread[:50]).mean())
        assert spearmanr(values[0])[0] == pytest.approx(0.79, abs=0.05), "dependence is kept"
    assert stds[0] == pytest.approx(1.0, abs=0.08)
    assert stds[1] == pytest.approx(0.5, abs=0.03)


def test_draws_are_their_own_distribution():
    mean, spread, y = two_outcomes(1000, 0)
    draws = quantiles(mean, spread, (np.arange(99) + 0.5) / 99)
    shuffled = np.random.default_rng(0).permuted(draws.reshape(1000, 2, 99), axis=2)
    fitted = fw.ForecastPredictor(DrawForecast(99)).fit(shuffled.reshape(1000, -1), y)
    values = fitted.sample(shuffled.reshape(1000, -1)[:20], 1000, random_state=0).values.numpy()
    np.testing.assert_allclose(values.mean(1), mean[:20], atol=0.6)
    np.testing.assert_allclose(values.std(1), spread[:20], rtol=0.15)


def test_a_mean_gets_its_past_errors_whole_or_in_proportion():
    y = np.array([[9.0, 22.0], [12.0, 18.0]])
    mean = np.array([[10.0, 20.0], [10.0, 20.0]])
    new = [[100.0, 200.0]]
    whole = fw.ForecastPredictor(MeanForecast()).fit(mean, y).sample(new, 8).values[0].numpy()
    share = fw.ForecastPredictor(MeanForecast(relative=True)).fit(mean, y).sample(new, 8).values[0]
    assert sorted(map(tuple, whole)) == [(99.0, 202.0), (102.0, 198.0)]
    assert sorted(map(tuple, share.numpy().round(9))) == [(90.0, 220.0), (120.0, 180.0)]


def test_models_of_scikit_learn_decide_in_three_lines():
    random = np.random.default_rng(0)
    X = random.uniform(0, 1, (900, 1))
    y = 10 + 5 * X[:, 0] + (1 + 3 * X[:, 0]) * random.standard_normal(900)
    models = [
        QuantileRegressor(quantile=level, alpha=0).fit(X[:400], y[:400])
        for level in (0.1, 0.5, 0.9)
    ]
    predictor = fw.ForecastPredictor(QuantileForecast((0.1, 0.5, 0.9)), models)
    learner = fw.DecoupledLearner(fw.Newsvendor(shortage=9, excess=1), predictor)
    orders = learner.fit(X[400:700], y[400:700]).decide(X[700:], n_scenarios=300)
    assert (y[700:, None] <= orders).mean() == pytest.approx(0.9, abs=0.06)
    mean = fw.ForecastPredictor(MeanForecast(), LinearRegression().fit(X[:400], y[:400]))
    assert mean.fit(X[400:], y[400:]).sample(X[:3], 50).n_scenarios == 50


def test_a_mostly_zero_outcome_stays_mostly_zero():
    random = np.random.default_rng(0)
    y = np.where(random.random(500) < 0.7, 0.0, random.exponential(10, 500))
    flat = np.tile(np.quantile(y, LEVELS), (500, 1))
    fitted = fw.ForecastPredictor(QuantileForecast(LEVELS)).fit(flat, y)
    values = fitted.sample(flat[:1], 500, random_state=0).values.numpy()
    assert (values == 0).mean() == pytest.approx(0.6, abs=0.12)


def test_contract_and_storage(tmp_path):
    mean, spread, y = two_outcomes(60, 0)
    predictor = fw.ForecastPredictor(QuantileForecast(LEVELS))
    check_predictor(predictor, quantiles(mean, spread), y)
    problem = fw.QuadraticNewsvendor(
        quadratic=[1.0, 1.0], linear=[0.0, 0.0], shortage_quadratic=[1.0, 1.0],
        shortage=[9.0, 9.0], excess_quadratic=[1.0, 1.0], excess=[1.0, 1.0],
        price=[1.0, 1.0], budget=20.0,
    )  # fmt: skip
    learner = fw.DecoupledLearner(problem, predictor).fit(quantiles(mean, spread), y)
    learner.policy_.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy").decide(quantiles(mean, spread))
    np.testing.assert_array_equal(loaded, learner.decide(quantiles(mean, spread)))
    model = LinearRegression().fit(mean, y)
    other = fw.DecoupledLearner(problem, fw.ForecastPredictor(MeanForecast(), model)).fit(mean, y)
    with pytest.raises(fw.exceptions.StorageError, match="model"):
        other.policy_.save(tmp_path / "other")


def test_wrong_forecasts_are_refused():
    mean, _, y = two_outcomes(20, 0)
    for levels in ((0.5,), (0.9, 0.1), (0.1, 1.5), "half"):
        with pytest.raises(fw.InvalidInputError, match="levels"):
            QuantileForecast(levels)
    with pytest.raises(fw.InvalidInputError, match="positive"):
        fw.ForecastPredictor(MeanForecast(relative=True)).fit(-mean, y)

    class Unsure:
        def predict(self, X):
            return np.full((len(X), 2), np.nan)

    with pytest.raises(fw.InvalidInputError, match="finite"):
        fw.ForecastPredictor(MeanForecast(), Unsure()).fit(mean, y)

    class Masked:
        def predict(self, X):
            return np.ma.masked_greater(X, np.median(X))

    with pytest.raises(fw.InvalidInputError, match="Masked predicts must have no masked entries"):
        fw.ForecastPredictor(MeanForecast(), Masked()).fit(mean, y)
    relative = fw.ForecastPredictor(MeanForecast(relative=True)).fit(np.abs(mean) + 1, y)
    assert not relative.sample(0 * mean, 4).values.any()  # nothing is expected
    below = np.where(np.arange(20)[:, None] == 3, -1.0, 1.0) * (np.abs(mean) + 1)
    with pytest.raises(fw.InvalidInputError, match=r"must not be negative.* 1 of 20 rows"):
        relative.sample(below, 4)
