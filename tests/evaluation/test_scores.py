"""Forecast scores against double sums and closed forms; bootstrap intervals by simulation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import forewise as fw
from forewise import metrics


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def weighted_forecast(n_contexts=6, n_scenarios=9, n_outcomes=2, seed=1):
    values = draw(seed, n_contexts, n_scenarios, n_outcomes)
    return fw.Scenarios(values, draw(seed + 1, n_contexts, n_scenarios).abs())


def double_sum(values, weights, y):
    """Σ w |x − y| − ½ ΣΣ w w |x − x'| of vectors, written out."""
    first = sum(w * np.linalg.norm(x - y) for w, x in zip(weights, values, strict=True))
    second = sum(
        w * v * np.linalg.norm(x - z)
        for w, x in zip(weights, values, strict=True)
        for v, z in zip(weights, values, strict=True)
    )
    return first - second / 2


# CRPS and energy score


@pytest.mark.parametrize("spread", [0.3, 1.0, 6.0])
def test_crps_is_its_double_sum(spread):
    """Outcomes among the scenarios, and beyond both of their ends."""
    scenarios, outcome = weighted_forecast(), spread * draw(5, 6, 2)
    found = metrics.crps(scenarios, outcome)
    for i in range(6):
        for k in range(2):
            expected = double_sum(
                scenarios.values[i, :, k : k + 1].numpy(), scenarios.weights[i].numpy(),
                outcome[i, k : k + 1].numpy(),
            )  # fmt: skip
            assert found[i, k].item() == pytest.approx(expected, rel=1e-10)


def test_crps_of_a_gaussian_forecast():
    levels = (np.arange(20_000) + 0.5) / 20_000
    outcome = np.array([-3.0, 0.0, 1.0, 7.0])
    mean, std = 1.0, 2.0
    k = (outcome - mean) / std
    expected = std * (k * (2 * stats.norm.cdf(k) - 1) + 2 * stats.norm.pdf(k) - 1 / np.sqrt(np.pi))
    scenarios = fw.Scenarios(np.tile(stats.norm.ppf(levels, mean, std)[None, :, None], (4, 1, 1)))
    found = metrics.crps(scenarios, outcome[:, None]).squeeze(1)
    assert np.allclose(found, expected, rtol=1e-3)


def test_crps_of_one_scenario_is_the_absolute_error():
    values, outcome = draw(1, 5, 1, 3), draw(2, 5, 3)
    found = metrics.crps(fw.Scenarios(values), outcome)
    assert torch.allclose(found, (values[:, 0] - outcome).abs())


def test_crps_is_precise_far_from_zero():
    """A tight forecast of a large number, and a hit on every scenario."""
    scenarios, outcome = weighted_forecast(), draw(5, 6, 2)
    near = metrics.crps(scenarios, outcome)
    shift = 2.0**30
    far = metrics.crps(fw.Scenarios(scenarios.values + shift, scenarios.weights), outcome + shift)
    assert torch.allclose(near, far, atol=1e-6)
    same = metrics.crps(fw.Scenarios(np.full((1, 7, 1), 1e9)), [[1e9]])
    assert same.item() == 0.0


def test_energy_score_is_its_double_sum():
    scenarios, outcome = weighted_forecast(n_outcomes=3), draw(5, 6, 3)
    found = metrics.energy_score(scenarios, outcome)
    for i in range(6):
        arrays = (scenarios.values[i].numpy(), scenarios.weights[i].numpy(), outcome[i].numpy())
        assert found[i].item() == pytest.approx(double_sum(*arrays), rel=1e-10)


def test_energy_score_of_one_outcome_is_the_crps():
    """With so many scenarios that a fast but inexact distance would be taken."""
    scenarios, outcome = weighted_forecast(4, 200, 1), 1e-3 * draw(5, 4, 1)
    energy = metrics.energy_score(scenarios, outcome)
    assert torch.allclose(energy, metrics.crps(scenarios, outcome).squeeze(1), rtol=1e-9)
    shift = 2.0**20
    far = fw.Scenarios(scenarios.values + shift, scenarios.weights)
    assert torch.allclose(metrics.energy_score(far, outcome + shift), energy, atol=1e-8)


@pytest.mark.parametrize("score", [metrics.crps, metrics.energy_score])
def test_the_true_distribution_scores_best(score):
    """On average: forecasts that are shifted, too sure or too wide do worse."""
    outcome, truth = draw(1, 3000, 2), draw(2, 3000, 60, 2)
    best = score(fw.Scenarios(truth), outcome).mean()
    for wrong in (truth + 0.5, 0.4 * truth, 2.5 * truth):
        assert score(fw.Scenarios(wrong), outcome).mean() > 1.05 * best


def test_energy_score_sees_dependence_and_crps_does_not():
    """Scenarios with the right margins whose outcomes move against each other."""
    common = draw(1, 1500, 1)
    outcome = torch.cat([common, common], dim=1)
    draws = draw(2, 1500, 50, 1)
    together, against = torch.cat([draws, draws], -1), torch.cat([draws, -draws], -1)
    scores = [metrics.energy_score(fw.Scenarios(v), outcome).mean() for v in (together, against)]
    assert scores[1] > 1.05 * scores[0]
    crps = [metrics.crps(fw.Scenarios(v), outcome).mean().item() for v in (together, against)]
    assert crps[1] == pytest.approx(crps[0], rel=0.02)


# Coverage and calibration


def test_intervals_of_a_calibrated_forecast_cover_as_often_as_they_say():
    """Contexts of different mean and spread; 199 draws make ranks that hit the levels exactly."""
    n = 4000
    mean, std = 5 * draw(1, n, 1), 0.2 + draw(2, n, 1).abs()
    outcome = torch.cat([mean + std * draw(3, n, 1), mean + std * draw(4, n, 1)], dim=1)
    noise = draw(5, n, 199, 2)
    truth = fw.Scenarios(mean.unsqueeze(1) + std.unsqueeze(1) * noise)
    for level in (0.5, 0.9):
        found = metrics.interval_coverage(truth, outcome, level)
        assert np.allclose(found, level, atol=4 * np.sqrt(level * (1 - level) / n))
    too_sure = fw.Scenarios(mean.unsqueeze(1) + 0.5 * std.unsqueeze(1) * noise)
    expected = 2 * stats.norm.cdf(0.5 * stats.norm.ppf(0.95)) - 1
    assert np.allclose(metrics.interval_coverage(too_sure, outcome, 0.9), expected, atol=0.04)


def test_calibration_curve_is_the_diagonal_where_calibrated():
    outcome, values = draw(1, 4000, 1), draw(2, 4000, 199, 1)
    curve = metrics.calibration_curve(fw.Scenarios(values), outcome)
    assert curve.levels.tolist() == pytest.approx(np.arange(0.05, 0.96, 0.05).tolist())
    assert curve.observed.shape == (19, 1)
    assert np.allclose(curve.observed.squeeze(1), curve.levels, atol=0.03)
    # A forecast that is too high has outcomes below its quantiles too often.
    high = metrics.calibration_curve(fw.Scenarios(values + 1), outcome, levels=[0.2, 0.5])
    expected = stats.norm.cdf(stats.norm.ppf([0.2, 0.5]) + 1)
    assert np.allclose(high.observed.squeeze(1), expected, atol=0.03)


def test_weighted_quantiles_by_hand():
    """Weights 0.2, 0.3, 0.5 on 30, 10, 20: cumulated 0.3 at 10, 0.8 at 20, 1 at 30."""
    scenarios = fw.Scenarios([[[30.0], [10.0], [20.0]]], [[0.2, 0.3, 0.5]])
    for y, expected in ((10.0, [1, 1, 1]), (15.0, [0, 1, 1]), (25.0, [0, 0, 1]), (31.0, [0, 0, 0])):
        curve = metrics.calibration_curve(scenarios, [[y]], [0.3, 0.8, 0.81])
        assert curve.observed.squeeze(1).tolist() == expected
    # The central 60 % reach from the 0.2 to the 0.8 quantile, ends included.
    inside = [metrics.interval_coverage(scenarios, [[y]], 0.6).item() for y in (9, 10, 20, 21)]
    assert inside == [0, 1, 1, 0]


# What holds for all scores

SCORES = {
    "crps": metrics.crps,
    "energy": metrics.energy_score,
    "coverage": lambda s, y: metrics.interval_coverage(s, y, 0.7),
    "calibration": lambda s, y: metrics.calibration_curve(s, y, [0.11, 0.53, 0.87]).observed,
}
every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES.keys())


@every_score
def test_order_halves_and_impossible_scenarios_do_not_matter(score):
    scenarios, outcome = weighted_forecast(), draw(5, 6, 2)
    values, weights = scenarios.values, scenarios.weights
    found = score(scenarios, outcome)
    assert torch.allclose(score(fw.Scenarios(values.flip(1), weights.flip(1)), outcome), found)
    twice = fw.Scenarios(torch.cat([values, values], 1), torch.cat([weights, weights], 1))
    assert torch.allclose(score(twice, outcome), found)
    junk = torch.full((6, 1, 2), torch.nan).double()
    padded = fw.Scenarios(
        torch.cat([values, junk], 1), torch.cat([weights, torch.zeros(6, 1).double()], 1)
    )
    assert torch.allclose(score(padded, outcome), found)


@every_score
def test_large_tables_give_what_their_rows_give(score):
    """900 contexts of 300 scenarios do not fit into one chunk, nor their distances into a block."""
    scenarios, outcome = weighted_forecast(900, 300), draw(5, 900, 2)
    whole = score(scenarios, outcome)
    parts = [score(scenarios[rows], outcome[rows]) for rows in (slice(450), slice(450, 900))]
    joined = torch.cat(parts) if len(whole) == 900 else torch.stack(parts).mean(0)
    assert torch.allclose(whole, joined)


@every_score
def test_scores_are_constants_in_double_precision(score):
    values, outcome = draw(1, 6, 9, 2).float().requires_grad_(), draw(5, 6, 2).requires_grad_()
    found = score(fw.Scenarios(values), outcome)
    assert found.dtype == torch.float64
    assert not found.requires_grad
    assert torch.equal(found, score(fw.Scenarios(values.detach().double()), outcome.tolist()))


FORECAST = fw.Scenarios(np.ones((2, 3, 1)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.crps(np.ones((2, 3, 1)), [[1.0]]), "scenarios must be a forewise"),
        (lambda: metrics.crps(FORECAST, [1.0]), r"outcome must have shape .*has shape \(1, 1\)"),
        (lambda: metrics.crps(FORECAST, [[1.0]]), r"\(2, 1\) as the scenarios have.*\(1, 1\)"),
        (lambda: metrics.energy_score(FORECAST, [[1.0, 2], [1, 2]]), "as the scenarios have"),
        (lambda: metrics.energy_score(FORECAST, [[1.0], [np.nan]]), "outcome must be finite"),
        (
            lambda: metrics.crps(fw.Scenarios([[[1.0]], [[np.inf]]]), [[1.0], [1.0]]),
            "scenarios must be finite, but context 1",
        ),
        (
            lambda: metrics.interval_coverage(FORECAST, [[1.0], [1.0]], 90),
            "level must lie strictly between 0 and 1, but is 90",
        ),
        (
            lambda: metrics.calibration_curve(FORECAST, [[1.0], [1.0]], [0.5, 0.5]),
            "levels must increase",
        ),
        (lambda: metrics.calibration_curve(FORECAST, [[1.0], [1.0]], [0.5, 1.0]), "levels must"),
        (lambda: metrics.calibration_curve(FORECAST, [[1.0], [1.0]], []), "at least one"),
    ],
)
def test_bad_forecasts_are_named(call, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        call()
