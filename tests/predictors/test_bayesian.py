"""The Bayesian network for tables: a posterior that is one, and what scenarios promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.predictors import (
    CosineSchedule,
    LastLayer,
    LinearEmbedding,
    MeanField,
    NormalHead,
    QuantileHead,
)

NOISE = 0.5
BRIEF = fw.Training(epochs=5)


@pytest.fixture(scope="module")
def linear_data():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 5)) @ (np.eye(5) + 0.3 * random.normal(size=(5, 5)))
    return X, X @ random.normal(size=5) + 0.3 + NOISE * random.normal(size=400)


def linear_network(inference, y, **training):
    """One linear layer on scaled columns, whose noise is known."""
    settings = fw.Training(batch_size=len(y), validation_share=0.0, **training)
    return fw.BayesianPredictor(
        (),
        n_members=1,
        inference=inference,
        head=NormalHead(std=NOISE / y.std()),
        embedding=LinearEmbedding(clip=math.inf, learn_scales=False),
        training=settings,
        random_state=0,
    )


def features(fitted, X):
    """What the last layer is linear in: scaled columns / √columns and a constant."""
    scaled = (X - fitted.context_centre_) / fitted.context_scale_
    return np.c_[scaled / math.sqrt(X.shape[1]), np.ones(len(X))]


def exact_posterior(fitted, X, y):
    """Mean and precision of the last layer's weights, in standardised units."""
    phi = features(fitted, X)
    variance = (NOISE / y.std()) ** 2
    precision = phi.T @ phi / variance + np.eye(phi.shape[1])
    return np.linalg.solve(precision, phi.T @ ((y - y.mean()) / y.std()) / variance), precision


def test_mean_field_training_reaches_the_closed_form_optimum(linear_data):
    X, y = linear_data
    fitted = linear_network(
        MeanField(), y, epochs=6000, learning_rate=0.1, schedule=CosineSchedule()
    ).fit(X, y)
    last = fitted.network_.last
    mean = torch.cat([last.weight[0, :, 0], last.bias[0, 0]]).detach().numpy()
    std = torch.cat([last.log_std_weight[0, :, 0], last.log_std_bias[0, 0]]).exp().detach().numpy()
    exact, precision = exact_posterior(fitted, X, y)
    posterior_std = np.sqrt(np.diag(np.linalg.inv(precision)))
    assert np.abs((mean - exact) / posterior_std).max() < 0.01
    # Of all independent Gaussians the nearest has the precision's diagonal.
    assert np.abs(std * np.sqrt(np.diag(precision)) - 1).max() < 0.05


def test_the_last_layer_has_the_exact_posterior_of_a_linear_model(linear_data):
    X, y = linear_data
    fitted = linear_network(LastLayer(), y, epochs=3).fit(X, y)
    _, precision = exact_posterior(fitted, X, y)
    root = fitted.network_.posterior[0, 0].double().numpy()
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(precision), rtol=1e-3, atol=1e-6)
    epistemic, aleatoric = fitted.epistemic_aleatoric(X[:50], n_draws=4000)
    phi = features(fitted, X[:50])
    exact = y.std() * np.sqrt(np.einsum("ij,jk,ik->i", phi, np.linalg.inv(precision), phi))
    np.testing.assert_allclose(np.sqrt(epistemic[:, 0]), exact, rtol=0.06)
    np.testing.assert_allclose(np.sqrt(aleatoric), NOISE, rtol=1e-3)


def epistemic_std(n_rows, *regions):
    """Root mean square over each region and two fits to NV1."""
    found = []
    for seed in range(2):
        data = fw.datasets.nv1(n_rows, random_state=seed)
        fitted = fw.BayesianPredictor(random_state=seed).fit(data.X, data.y)
        found.append([fitted.epistemic_aleatoric(x[:, None])[0].mean() for x in regions])
    return np.sqrt(np.mean(found, axis=0))


# Half of NV1's contexts are N(-3, 1), half N(3, 1). Noise is 2 |x sin x| up to 3, none above: what
# the gap is compared with must have as little.
NOISY, QUIET = np.linspace(-4, -2, 40), np.linspace(3.2, 4, 40)
GAP = np.linspace(-0.3, 0.3, 20)
BEYOND = np.r_[np.linspace(-9, -8, 20), np.linspace(8, 9, 20)]


def test_epistemic_uncertainty_grows_where_the_data_end():
    noisy, quiet, gap, beyond = epistemic_std(1800, NOISY, QUIET, GAP, BEYOND)
    assert gap > 3 * quiet
    assert beyond > 3 * max(noisy, quiet)


@pytest.mark.slow
def test_epistemic_uncertainty_shrinks_with_the_root_of_the_rows():
    few, many = (epistemic_std(n_rows, NOISY)[0] for n_rows in (500, 8000))
    assert math.log(few / many) / math.log(8000 / 500) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("inference", [LastLayer(), MeanField()])
def test_scenarios_have_gradients_in_all_weights(linear_data, inference):
    X, y = linear_data
    predictor = fw.BayesianPredictor(inference=inference, training=BRIEF, random_state=0)
    fitted = predictor.fit(X, np.c_[y, -y])
    rows, _ = predictor.prepare(X[:7], np.c_[y, -y][:7])
    scenarios = fitted.scenarios_with_gradients(rows.x_scaled, 16, torch.Generator().manual_seed(0))
    scenarios.values.square().sum().backward()
    for name, parameter in fitted.network_.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_noises_of_several_outcomes_keep_their_correlation(linear_data):
    X, _ = linear_data
    noise = np.random.default_rng(2).multivariate_normal([0, 0], [[1, -0.8], [-0.8, 1]], size=400)
    predictor = fw.BayesianPredictor(training=fw.Training(epochs=30), random_state=0)
    values = predictor.fit(X, X[:, :2] + noise).sample(X[:1], 2048, random_state=0).values[0]
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(-0.75, abs=0.15)


def test_the_quantile_head_inverts_itself():
    head = QuantileHead()
    outputs = torch.randn(3, 5, 2, 13).sort(-1).values.flatten(-2)
    noise = torch.randn(3, 5, 2).clamp(-3, 3)
    scores = head.normal_scores(outputs, head.values(outputs, noise, torch.arange(3)))
    torch.testing.assert_close(scores, noise, atol=1e-2, rtol=1e-2)


def test_intervals_cover_what_they_promise_where_noise_depends_on_the_context():
    random = np.random.default_rng(0)
    X, new = random.uniform(-1, 1, (800, 3)), random.uniform(-1, 1, (800, 3))

    def outcomes(x):
        return 3 * x[:, 0] + (1 + x[:, 1]) * (random.exponential(size=len(x)) - 1)

    fitted = fw.BayesianPredictor(random_state=0).fit(X, outcomes(X))
    scenarios = fitted.sample(new, 256, random_state=0)
    covered = fw.metrics.interval_coverage(scenarios, outcomes(new), 0.9)
    assert 0.86 <= float(covered) <= 0.95  # members and their posteriors widen it a little


def test_far_off_its_data_it_is_less_sure_and_within_reach(linear_data):
    X, y = linear_data
    fitted = fw.BayesianPredictor(random_state=0).fit(X, y)
    near, far = (sum(fitted.epistemic_aleatoric(rows))[:, 0].mean() for rows in (X, 3 * X))
    assert far > near
    values = fitted.sample(1e6 * X, 64, random_state=0).values.numpy()
    room = 0.5 * np.ptp(y)
    assert values.min() >= y.min() - room
    assert values.max() <= y.max() + room
    assert np.sqrt(sum(fitted.epistemic_aleatoric(1e6 * X))).max() <= 2 * np.ptp(y)
