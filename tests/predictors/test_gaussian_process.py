"""The Gaussian process: scikit-learn's numbers, and what it says when it fails."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import forewise as fw
from forewise import GaussianProcessPredictor
from forewise.predictors import gaussian_process
from forewise.predictors.gaussian_process import MarginalLikelihood, best_kernel
from tests.predictors.tables import moments, table


def scikit_learn_process(X, target, **settings):
    kernel = RBF(1.0, (1e-2, 1e4)) + WhiteKernel(1.0, (0.01, 100.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessRegressor(kernel, **settings).fit(X, target)


@pytest.mark.parametrize("alpha", [1e-10, 0.1])
def test_gaussian_process_is_that_of_scikit_learn(alpha):
    X, y = table(80)
    predictor = GaussianProcessPredictor(alpha=alpha).fit(X, y)
    contexts = np.concatenate([table(20, seed=1)[0], X[:5], [[500.0, 0.0, 0.0]]])
    epistemic, aleatoric = predictor.epistemic_aleatoric(contexts)
    sampled = predictor.sample(contexts, 4096, random_state=0)
    mean, variance = moments(sampled)
    scaled, target = (X - X.mean(0)) / X.std(0), (y - y.mean(0)) / y.std(0)
    for outcome in range(2):
        twin = scikit_learn_process(scaled, target[:, outcome], alpha=alpha, random_state=0)
        expected, std = twin.predict((contexts - X.mean(0)) / X.std(0), return_std=True)
        # Draws are symmetric but for scrambling: their mean is the process's within little.
        np.testing.assert_allclose(
            mean[:, outcome], y[:, outcome].mean() + y[:, outcome].std() * expected, atol=0.1
        )
        total = epistemic[:, outcome] + aleatoric[:, outcome]
        np.testing.assert_allclose(total, (y[:, outcome].std() * std) ** 2, rtol=1e-5)
    np.testing.assert_allclose(variance, epistemic + aleatoric, rtol=0.02)


@pytest.mark.parametrize(("length_scale", "noise"), [(0.3, 0.05), (1.0, 1.0), (20.0, 0.01)])
def test_marginal_likelihood_and_its_gradient_are_those_of_scikit_learn(length_scale, noise):
    X, y = table(60)
    X, target = (X - X.mean(0)) / X.std(0), (y[:, 0] - y[:, 0].mean()) / y[:, 0].std()
    likelihood = MarginalLikelihood(cdist(X, X, "sqeuclidean"), target, alpha=1e-3)
    twin = scikit_learn_process(X, target, alpha=1e-3, optimizer=None)
    logs = np.log([length_scale, noise])
    value, gradient = likelihood.negative_log_and_gradient(logs)
    expected, slope = twin.log_marginal_likelihood(logs, eval_gradient=True)
    assert value + 30 * np.log(2 * np.pi) == pytest.approx(-expected, rel=1e-9)
    np.testing.assert_allclose(gradient, -slope, rtol=1e-6, atol=1e-8)


BOUNDS = np.log([(1e-2, 1e3), (1e-3, 1e1)])


def likelihood_of_a_wave(n_rows: int, until: float, noise: float) -> MarginalLikelihood:
    """A wave that is too fast for a search that starts at a length scale of 1."""
    random = np.random.RandomState(0)
    X = random.uniform(0, until, (n_rows, 1))
    y = np.sin(6 * X[:, 0]) + noise * random.standard_normal(n_rows)
    return MarginalLikelihood(cdist(X, X, "sqeuclidean"), y, alpha=1e-10)


def test_restarts_find_the_curve_that_the_first_search_takes_for_noise():
    likelihood = likelihood_of_a_wave(20, until=5, noise=0.1)
    (_, first_noise), _ = best_kernel(likelihood, BOUNDS, 0, np.random.RandomState(0))
    (_, noise), converged = best_kernel(likelihood, BOUNDS, 9, np.random.RandomState(0))
    assert first_noise > 0.3
    assert noise < 0.03
    assert converged


def test_restarts_on_some_of_many_rows_find_what_a_good_start_on_all_does(monkeypatch):
    monkeypatch.setattr(gaussian_process, "_MANY_ROWS", 500)
    likelihood = likelihood_of_a_wave(501, until=120, noise=0.1)
    first, _ = best_kernel(likelihood, BOUNDS, 0, np.random.RandomState(1))
    found, converged = best_kernel(likelihood, BOUNDS, 4, np.random.RandomState(1))
    thorough, _ = likelihood.search(BOUNDS, [(0.25, 0.01)])
    assert likelihood.negative_log(first) > likelihood.negative_log(thorough) + 10
    np.testing.assert_allclose(found, thorough, rtol=1e-3)
    assert converged


def test_gaussian_process_tells_the_two_uncertainties_apart():
    """Noise of variance 4 everywhere; far from the data the curve is as open as the outcome."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 10, (200, 1))
    y = 20 + 10 * np.sin(X) + 2 * random.standard_normal((200, 1))
    predictor = GaussianProcessPredictor().fit(X, y)
    epistemic, aleatoric = predictor.epistemic_aleatoric([[5.0], [1000.0]])
    np.testing.assert_allclose(aleatoric, 4, rtol=0.25)
    assert epistemic[0, 0] < 0.5
    assert epistemic[1, 0] == pytest.approx(y.var(), rel=1e-6)
    mean = moments(predictor.sample([[5.0], [1000.0]], 256, random_state=0))[0]
    np.testing.assert_allclose(mean[:, 0], [20 + 10 * np.sin(5.0), y.mean()], atol=1)


def test_gaussian_process_takes_at_most_max_rows():
    X, y = table(120)
    predictor = GaussianProcessPredictor(max_rows=50).fit(X, y)
    assert predictor.cholesky_.shape == (2, 50, 50)
    again = GaussianProcessPredictor(max_rows=50).fit(X, y)
    np.testing.assert_array_equal(predictor.contexts_, again.contexts_)
    other = GaussianProcessPredictor(max_rows=50, random_state=1).fit(X, y)
    assert not np.array_equal(predictor.contexts_, other.contexts_)
    assert len(GaussianProcessPredictor(max_rows=None).fit(X, y).contexts_) == 120


def test_gaussian_process_warns_of_failed_searches_only(monkeypatch):
    X, y = table(40)
    smooth = X[:, :1] * [1.0, 2.0]
    at_bound = GaussianProcessPredictor().fit(X, smooth)  # no warning, which would be an error
    np.testing.assert_allclose(at_bound.noise_, 0.01, rtol=1e-3)
    search = gaussian_process.minimize

    def one_step(*arguments, **settings):
        return search(*arguments, **settings, options={"maxiter": 1})

    monkeypatch.setattr(gaussian_process, "minimize", one_step)
    with pytest.warns(ConvergenceWarning, match="n_restarts"):
        GaussianProcessPredictor().fit(X, y)


def test_gaussian_process_that_cannot_be_factorised_says_what_to_do():
    X = np.zeros((60, 1))
    X[0] = 1.0
    predictor = GaussianProcessPredictor(noise_bounds=(1e-30, 1e-30), alpha=1e-30)
    with pytest.raises(fw.InvalidInputError, match="alpha=1e-30"):
        predictor.fit(X, np.arange(60.0))
