"""The two Bayesian properties, and what scenarios promise."""

import math

import numpy as np
import pytest
import torch
from bayesian_tables import (
    Architecture,
    BayesianNetwork,
    GaussianHead,
    LastLayer,
    MeanField,
    QuantileHead,
    Training,
)

torch.set_num_threads(1)
LINEAR = Architecture(hidden_sizes=(), n_frequencies=0, learn_scales=False)
NOISE = 0.5


@pytest.fixture(scope="module")
def linear_data():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 5)) @ (np.eye(5) + 0.3 * random.normal(size=(5, 5)))
    y = X @ random.normal(size=5) + 0.3 + NOISE * random.normal(size=400)
    return X, y


def posterior(X, y, prior_std=1.0):
    """Exact Gaussian posterior of (weights in the layer's units, bias)."""
    phi = np.c_[X / math.sqrt(X.shape[1]), np.ones(len(X))]
    precision = phi.T @ phi / NOISE**2 + np.eye(phi.shape[1]) / prior_std**2
    return np.linalg.solve(precision, phi.T @ y / NOISE**2), precision


def test_mean_field_training_reaches_the_closed_form_optimum(linear_data):
    X, y = linear_data
    model = BayesianNetwork(
        n_members=1,
        n_folds=1,
        architecture=LINEAR,
        head=GaussianHead(1, NOISE),
        inference=MeanField(),
        training=Training(epochs=4000, learning_rate=0.05, bias_rate=1.0, batch_bounds=(400, 400)),
        standardise=False,
    ).fit(X, y)
    last = model.network_.last
    mean = torch.cat([last.weight[0, :, 0], last.bias[0, 0]]).detach().numpy()
    std = torch.cat([last.log_std_weight[0, :, 0], last.log_std_bias[0, 0]]).exp().detach().numpy()
    exact, precision = posterior(X, y)
    optimum = 1 / np.sqrt(
        np.diag(precision)
    )  # mean-field optimum: one over the precision's diagonal
    posterior_std = np.sqrt(np.diag(np.linalg.inv(precision)))
    assert np.abs((mean - exact) / posterior_std).max() < 0.01
    assert np.abs(std / optimum - 1).max() < 0.05


def test_last_layer_is_the_exact_posterior_of_a_linear_model(linear_data):
    X, y = linear_data
    model = BayesianNetwork(
        n_members=1,
        n_folds=1,
        architecture=LINEAR,
        head=GaussianHead(1, NOISE),
        inference=LastLayer(),
        training=Training(epochs=3, batch_bounds=(400, 400)),
        standardise=False,
    ).fit(X, y)
    factor = model.posterior_[0, 0].double().numpy()
    _, precision = posterior(X, y)
    np.testing.assert_allclose(factor.T @ factor, np.linalg.inv(precision), rtol=1e-3, atol=1e-6)
    draws = np.sqrt(model.epistemic_aleatoric(X[:50], n_draws=4000)[0][:, 0])
    phi = np.c_[X[:50] / math.sqrt(5), np.ones(50)]
    exact = np.sqrt(np.einsum("ij,jk,ik->i", phi, np.linalg.inv(precision), phi))
    np.testing.assert_allclose(draws, exact, rtol=0.06)


def toy(n, seed=0):
    """Like NV1: two clusters with a gap between them, noise 0.3, a curve with several waves."""
    random = np.random.default_rng(seed)
    x = np.where(random.random(n) < 0.5, random.uniform(-5, -1.5, n), random.uniform(1.5, 5, n))
    return x[:, None], np.sin(2 * x) + 0.3 * x + 0.3 * random.normal(size=n)


def epistemic_std(n, x, seed=0):
    """Mean over two fits of the epistemic std at x."""
    found = [
        BayesianNetwork(random_state=s)
        .fit(*toy(n, s))
        .epistemic_aleatoric(x[:, None], 128)[0][:, 0]
        for s in (seed, seed + 1)
    ]
    return np.sqrt(np.mean(found, axis=0))


DENSE = np.r_[np.linspace(-4.5, -2, 40), np.linspace(2, 4.5, 40)]


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def test_epistemic_std_grows_off_the_data():
    dense = rms(epistemic_std(800, DENSE))
    gap = rms(epistemic_std(800, np.linspace(-0.5, 0.5, 20)))
    beyond = rms(epistemic_std(800, np.r_[np.linspace(-8, -7, 20), np.linspace(7, 8, 20)]))
    assert gap > 3 * dense
    assert beyond > 3 * dense


def test_epistemic_std_shrinks_with_the_root_of_the_rows():
    few, many = (rms(epistemic_std(n, DENSE)) for n in (250, 4000))
    rate = math.log(few / many) / math.log(4000 / 250)
    assert 0.35 < rate < 0.65


def test_scenarios_have_gradients_in_all_weights_and_repeat(linear_data):
    X, y = linear_data
    outcomes = np.c_[y, -y + 0.1 * np.random.default_rng(1).normal(size=400)]
    for inference in (LastLayer(), MeanField()):
        model = BayesianNetwork(inference=inference, training=Training(epochs=5)).fit(X, outcomes)
        first, again = (model.sample(X[:7], 16, seed=3) for _ in range(2))
        assert first.shape == (7, 16, 2)
        np.testing.assert_array_equal(first, again)
        x = model.scaling_(X[:7])
        values = model.scenarios(x, torch.randn(16, 7, 2), torch.Generator().manual_seed(0))
        values.square().sum().backward()
        assert all(
            p.grad is not None and p.grad.abs().sum() > 0 for p in model.network_.parameters()
        )


def test_joint_scenarios_keep_the_correlation(linear_data):
    X, _ = linear_data
    noise = np.random.default_rng(2).multivariate_normal([0, 0], [[1, -0.8], [-0.8, 1]], size=400)
    model = BayesianNetwork(training=Training(epochs=30)).fit(X, X[:, :2] + noise)
    values = model.sample(X[:1], 2048)[0]
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(-0.75, abs=0.15)


def test_quantile_head_inverts_itself():
    head = QuantileHead(2)
    outputs = torch.randn(3, 5, 26).reshape(3, 5, 2, 13).sort(-1).values.flatten(-2)
    noise = torch.randn(3, 5, 2).clamp(-3, 3)
    scores = head.normal_scores(outputs, head.values(outputs, noise))
    torch.testing.assert_close(scores, noise, atol=1e-2, rtol=1e-2)
