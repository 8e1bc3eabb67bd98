"""Networks: weights, heads, divergence and moments against analysis."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.predictors.networks.heads import FactorHead, GaussianHead, MixtureHead, PointHead
from forewise.predictors.networks.network import (
    EnsembleWeights,
    FixedWeights,
    GaussianWeights,
    LayeredNetwork,
    Layout,
)
from forewise.predictors.sampling import normal_draws, stratified_normals


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_one_batched_product_equals_a_loop_over_draws_and_layers():
    layout = Layout((3, 5, 4, 2))
    weights = GaussianWeights(layout, 1.0, 0.01, generator()).draw(7, generator(1))
    x = torch.randn(6, 3, generator=generator(2))
    outputs = layout.forward(x, weights)
    for draw, vector in enumerate(weights):
        hidden, start = x, 0
        for index, (rows, columns) in enumerate(layout.shapes):
            matrix = vector[start : start + rows * columns].reshape(rows, columns)
            start += rows * columns
            hidden = hidden if index == 0 else hidden.clamp_min(0)
            hidden = hidden @ matrix[:-1] + matrix[-1]
        assert torch.allclose(outputs[draw], hidden, atol=1e-5)


def test_divergence_agrees_with_monte_carlo():
    layout = Layout((2, 3, 1))
    weights = GaussianWeights(layout, 0.7, 0.01, generator())
    with torch.no_grad():
        weights.rho.copy_(torch.linspace(-2, 1, layout.n_weights))
    std = torch.nn.functional.softplus(weights.rho)
    draws = weights.draw(200_000, generator(1)).double()
    posterior = torch.distributions.Normal(weights.mean.double(), std.double())
    prior = torch.distributions.Normal(0.0, 0.7)
    ratio = (posterior.log_prob(draws) - prior.log_prob(draws)).sum(1)
    error = ratio.std() / math.sqrt(len(ratio))
    assert abs(ratio.mean() - weights.divergence()) < 4 * error
    exact = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(
        torch.zeros_like(std).double(), torch.full_like(std, 0.7).double())).sum()  # fmt: skip
    assert torch.isclose(weights.divergence().double(), exact, rtol=1e-5)


def linear_predictor():
    """A fitted Bayesian predictor without hidden layers, its weights set by hand."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2)), random.normal(size=40)
    predictor = fw.predictors.MeanFieldPredictor(
        (), training=fw.Training(epochs=1), random_state=0
    ).fit(X, y)
    weights = predictor.network_.weights
    with torch.no_grad():
        # Columns: mean, log-variance; rows: two inputs and the bias.
        weights.mean.copy_(torch.tensor([[1.0, 0.3], [-2.0, 0.0], [0.5, -1.0]]).flatten())
        weights.rho.copy_(torch.tensor([[0.0, -30.0], [-1.0, -30.0], [-2.0, -30.0]]).flatten())
    return predictor, X


def test_moments_of_a_linear_network_are_those_of_the_analysis():
    predictor, X = linear_predictor()
    x = (X - predictor.context_mean_) / predictor.context_std_
    std = np.log1p(np.exp([0.0, -1.0, -2.0]))
    mean = x @ [1.0, -2.0] + 0.5
    epistemic = x**2 @ std[:2] ** 2 + std[2] ** 2
    aleatoric = np.exp(x @ [0.3, 0.0] - 1)
    scale, centre = predictor.outcome_std_[0], predictor.outcome_mean_[0]

    found = predictor.epistemic_aleatoric(X, n_draws=40_000)
    assert np.allclose(found[0][:, 0], epistemic * scale**2, rtol=0.05)
    assert np.allclose(found[1][:, 0], aleatoric * scale**2, rtol=1e-3)

    drawn = predictor.sample(X, 40_000, random_state=1).values[:, :, 0]
    assert np.allclose(drawn.mean(1), mean * scale + centre, atol=0.02 * scale)
    total = (epistemic + aleatoric) * scale**2
    assert np.allclose(drawn.var(1), total, rtol=0.05)


def test_mean_and_variance_of_a_scenario_come_from_the_same_weights():
    """With a mean and a log-variance that rise together, scatter is larger where means are."""
    layout = Layout((1, 2))
    network = LayeredNetwork(
        layout, GaussianWeights(layout, 1.0, 0.01, generator()), GaussianHead(1)
    )
    draws = torch.tensor([[0.0, 0.0, -1.0, -4.0], [0.0, 0.0, 1.0, 3.0]])
    network.weights.draw = lambda n, g: draws.repeat(n // 2, 1)
    values, weights = network.scenarios(torch.zeros(1, 1), 20_000, generator())
    assert weights is None
    low, high = values[0, 0::2, 0], values[0, 1::2, 0]
    assert low.mean().item() == pytest.approx(-1, abs=0.01)
    assert high.mean().item() == pytest.approx(1, abs=0.1)
    assert low.std().item() == pytest.approx(math.exp(-2), rel=0.05)
    assert high.std().item() == pytest.approx(math.exp(1.5), rel=0.05)


@pytest.mark.parametrize("n_members", [2, 4, 5, 8])
def test_every_member_has_all_of_the_noise(n_members):
    """Evenly spread noises have a pattern: members must not follow it."""
    head = GaussianHead(1)
    outputs = torch.zeros(n_members, 1, head.width, dtype=torch.float64)
    outputs[..., 0] = 100 * torch.arange(n_members)[:, None]
    noise = torch.from_numpy(normal_draws(64, 1, np.random.default_rng(0)))[:, None]
    values = head.equal_scenarios(outputs, noise).flatten()
    member = (values / 100).round()
    assert member.unique(return_counts=True)[1].max() <= math.ceil(64 / n_members)
    for each in range(n_members):
        own = values[member == each] - 100 * each
        assert own.mean().abs().item() < 0.4
        assert own.std().item() == pytest.approx(1, abs=0.4)


def mixture_outputs():
    head = MixtureHead(2, 3)
    return head, torch.randn(4, 5, head.width, generator=generator(3), dtype=torch.float64)


def test_likelihood_of_a_mixture_agrees_with_torch():
    head, outputs = mixture_outputs()
    y = torch.randn(5, 2, generator=generator(4), dtype=torch.float64)
    mean, log_variance, log_probability = head._split(outputs)
    components = torch.distributions.Independent(
        torch.distributions.Normal(mean, (0.5 * log_variance).exp()), 1
    )
    mixture = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(logits=log_probability), components
    )
    expected = -mixture.log_prob(y).mean() / 2
    assert torch.isclose(head.negative_log_likelihood(outputs, y), expected)
    assert torch.allclose(head.moments(outputs)[0], mixture.mean)
    assert torch.allclose(head.moments(outputs)[1], mixture.variance)


def test_weighted_scenarios_of_a_mixture_have_its_moments():
    head, outputs = mixture_outputs()
    outputs = outputs[:1]
    noise = torch.randn(60_000, 1, 3, generator=generator(5), dtype=torch.float64)
    mean, variance = (moment[0] for moment in head.moments(outputs))
    for scenarios in (
        fw.Scenarios(*head.scenarios(outputs, noise)),
        fw.Scenarios(head.equal_scenarios(outputs, noise)),
    ):
        found = (scenarios.weights[..., None] * scenarios.values).sum(1)
        spread = (scenarios.weights[..., None] * (scenarios.values - found[:, None]) ** 2).sum(1)
        assert torch.allclose(found, mean, atol=0.05)
        assert torch.allclose(spread, variance, rtol=0.05)


def test_a_mixture_decides_with_the_components_that_are_probable():
    """And with outcomes that belong together: one component for all of them."""
    head = MixtureHead(2, 2)
    outputs = torch.zeros(1, 1, head.width, dtype=torch.float64)
    outputs[..., :4] = torch.tensor([-9.0, -9.0, 9.0, 9.0])
    outputs[..., 4:8] = -8.0
    outputs[..., -2:] = torch.tensor([0.25, 0.75]).log()
    noise = torch.from_numpy(normal_draws(64, 3, np.random.default_rng(0)))[:, None]
    values = head.equal_scenarios(outputs, noise)[0]
    assert (values[:, 0] < 0).sum().item() == 16
    assert ((values[:, 0] < 0) == (values[:, 1] < 0)).all()


def test_gradients_reach_the_probabilities_of_a_mixture():
    head, outputs = mixture_outputs()
    outputs.requires_grad_()
    values, weights = head.scenarios(outputs, torch.zeros(6, 1, 3, dtype=torch.float64))
    decision = fw.solve(
        fw.Newsvendor([1.0, 2.0], [3.0, 1.0]), fw.Scenarios(values, weights)
    ).decision
    assert decision.shape == (5, 2)
    quadratic = fw.QuadraticNewsvendor(1.0, [0.0, 0.0], 1.0, [1.0, 2.0], 1.0, [2.0, 1.0])
    fw.solve(quadratic, fw.Scenarios(values, weights)).decision.sum().backward()
    assert outputs.grad[..., -3:].abs().sum() > 0


def factor_outputs(n_factors):
    head = FactorHead(4, n_factors=n_factors)
    outputs = 2 * torch.randn(3, 5, head.width, generator=generator(3), dtype=torch.float64)
    mean, std, loadings = head._joint(outputs)
    shared = torch.eye(4) + loadings @ loadings.transpose(-1, -2)
    covariance = std[..., None] * shared * std[..., None, :]
    return head, outputs, torch.distributions.MultivariateNormal(mean, covariance)


@pytest.mark.parametrize("n_factors", [1, 2, 6])
def test_likelihood_with_factors_agrees_with_torch(n_factors):
    head, outputs, expected = factor_outputs(n_factors)
    y = torch.randn(5, 4, generator=generator(4), dtype=torch.float64)
    found = head.negative_log_likelihood(outputs, y)
    assert torch.isclose(found, -expected.log_prob(y).mean() / 4)


@pytest.mark.parametrize("n_factors", [1, 2])
def test_scenarios_with_factors_have_their_covariance_and_the_variances_of_none(n_factors):
    head, outputs, expected = factor_outputs(n_factors)
    noise = torch.randn(3 * 60_000, 1, head.n_noises, generator=generator(5), dtype=torch.float64)
    values = head.scenarios(outputs, noise)[0]
    for draw in range(3):
        for context in range(5):
            some = values[context].chunk(3)[draw]
            covariance = expected.covariance_matrix[draw, context]
            size = covariance.diagonal().max()
            assert torch.allclose(some.T.cov(), covariance, atol=0.03 * size, rtol=0.03)
    mean, variance = head.moments(outputs)
    plain = GaussianHead(4).moments(outputs[..., :8])
    assert torch.equal(mean, plain[0])
    assert torch.equal(variance, plain[1])
    assert torch.allclose(variance, expected.variance)


def test_factors_that_grow_without_end_keep_a_finite_likelihood():
    head = FactorHead(3, n_factors=2)
    outputs = torch.full((1, 2, head.width), 1e4).requires_grad_()
    loss = head.negative_log_likelihood(outputs, torch.tensor([[0.0, 1.0, -1.0]]).expand(2, 3))
    loss.backward()
    assert loss.isfinite()
    assert outputs.grad.isfinite().all()


def outcomes_that_move_together(count=1500):
    """Noises of two outcomes are shared on one side of the context, opposed on the other."""
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (count, 1))
    common = random.normal(size=count)
    own = random.normal(size=(count, 2))
    y = np.c_[common, np.sign(X[:, 0]) * common] + 0.5 * own
    return X, y


def test_predictors_with_a_factor_learn_how_noises_move_together():
    X, y = outcomes_that_move_together()
    settings = {"training": fw.Training(epochs=60, learning_rate=5e-3), "random_state": 0}
    gaussian = fw.GaussianPredictor((16, 16), n_factors=1, **settings)
    predictors = [
        fw.predictors.MeanFieldPredictor((16, 16), 4, n_factors=1, **settings),
        gaussian,
        fw.EnsemblePredictor(gaussian, 2, random_state=0),
    ]
    truth = 1 / 1.25
    for predictor in predictors:
        drawn = predictor.fit(X, y).sample([[-0.7], [0.7]], 4000, random_state=1).values
        below, above = (np.corrcoef(context.T)[0, 1] for context in drawn.numpy())
        assert below == pytest.approx(-truth, abs=0.1)
        assert above == pytest.approx(truth, abs=0.1)


def test_without_factors_and_for_one_outcome_noises_are_independent():
    X, y = outcomes_that_move_together(200)
    brief = {"training": fw.Training(epochs=2), "random_state": 0}
    drawn = fw.GaussianPredictor((4,), **brief).fit(X, y).sample([[0.7]], 4000, 0).values[0]
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.1
    one, same = (
        fw.GaussianPredictor((4,), n_factors=count, **brief).fit(X, y[:, 0]).sample(X, 8, 0).values
        for count in (0, 3)
    )
    assert torch.equal(one, same)


@pytest.mark.parametrize("ensemble", [False, True])
def test_without_extrapolation_contexts_are_held_at_the_edge_of_what_was_seen(ensemble):
    X = np.random.default_rng(0).uniform([-1, 5], [1, 9], (200, 2))
    y = X @ [[3.0], [1.0]]

    def forecast(extrapolate):
        brief = fw.Training(epochs=60, learning_rate=0.05, validation_share=0.0)
        one = fw.PointPredictor((), extrapolate, training=brief, random_state=0)
        predictor = fw.EnsemblePredictor(one, 2, random_state=0) if ensemble else one
        predictor.fit(X, y)
        contexts = [X.min(0), X.min(0) - 4, X.max(0), X.max(0) + np.array([0, 4]), X[0]]
        return predictor.sample(contexts, 1).values[:, 0, 0]

    free, held = forecast(True), forecast(False)
    assert torch.equal(free[[0, 2, 4]], held[[0, 2, 4]])
    assert held[1] == held[0]
    assert held[3] == held[2]
    assert free[1] < free[0] - 10
    assert free[3] > free[2] + 2


def test_point_head_gives_each_member_once():
    layout = Layout((1, 2))
    members = (FixedWeights(layout, generator()) for _ in range(3))
    network = LayeredNetwork(layout, EnsembleWeights(members), PointHead(2))
    values, _ = network.scenarios(torch.zeros(4, 1), 64, generator())
    assert values.shape == (4, 3, 2)
    network = LayeredNetwork(layout, FixedWeights(layout, generator()), PointHead(2))
    values, _ = network.scenarios(torch.zeros(4, 1), 64, generator())
    assert values.shape == (4, 1, 2)


def test_stratified_draws_are_normal_and_tell_more_than_independent_ones():
    draws = normal_draws(4096, 3, np.random.default_rng(0))
    assert np.isfinite(draws).all()
    assert np.allclose(draws.mean(0), 0, atol=2e-3)
    assert np.allclose(draws.std(0), 1, atol=5e-3)
    assert np.allclose(np.corrcoef(draws.T), np.eye(3), atol=0.02)
    errors = [normal_draws(16, 1, np.random.default_rng(seed)).mean() for seed in range(200)]
    assert np.std(errors) < 0.3 / math.sqrt(16)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / math.sqrt(200)


def test_training_noise_is_stratified_within_a_context_and_independent_between():
    noise = stratified_normals(16, 2000, 2, generator()).double()
    levels = torch.special.ndtr(noise)
    assert torch.equal((16 * levels).floor().long().sort(0).values[:, 0, 0], torch.arange(16))
    assert noise.mean().item() == pytest.approx(0, abs=1e-3)
    assert noise.square().mean().item() == pytest.approx(1, abs=0.01)
    by_row = noise[0]
    assert abs(np.corrcoef(by_row[:, 0], by_row[:, 1])[0, 1]) < 0.1
    assert abs(np.corrcoef(by_row[:-1, 0], by_row[1:, 0])[0, 1]) < 0.1


@pytest.mark.parametrize("count", [1, 2, 3, 17])
def test_any_number_of_draws(count):
    assert normal_draws(count, 2, np.random.default_rng(0)).shape == (count, 2)


def test_an_ensembles_draws_are_shared_out_among_its_members():
    layout = Layout((1, 2))
    members = [GaussianWeights(layout, 1.0, 1e-9, generator()) for _ in range(3)]
    for place, member in enumerate(members):
        torch.nn.init.constant_(member.mean, place)
    draws = EnsembleWeights(members).draw(8, generator())[:, 0].round()
    assert draws.tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    assert len(EnsembleWeights(members).draw(1, generator())) == 1


def test_an_ensembles_divergence_is_its_members_mean():
    layout = Layout((1, 2))
    members = [GaussianWeights(layout, std, 0.3, generator()) for std in (0.5, 1.0, 2.0)]
    torch.testing.assert_close(
        EnsembleWeights(members).divergence(),
        torch.stack([member.divergence() for member in members]).mean(),
    )


def test_an_ensemble_is_less_certain_than_one_network_where_there_are_no_data():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (200, 1))
    y = np.sin(3 * X) + 0.1 * random.normal(size=(200, 1))
    brief = fw.Training(epochs=60, learning_rate=5e-3)
    one = fw.predictors.MeanFieldPredictor((32, 32), 2, training=brief, random_state=0)
    far = np.array([[-3.0], [3.0]])
    alone = one.fit(X, y).epistemic_aleatoric(far)[0].mean()
    together = fw.EnsemblePredictor(one, 4, random_state=0).fit(X, y).epistemic_aleatoric(far)[0]
    assert together.mean() > 2 * alone
