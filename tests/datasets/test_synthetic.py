"""The paper's generators against their formulas, written down here a second time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import erfc
from scipy.stats import kstest, norm

import forewise as fw
from forewise.datasets import (
    Dataset,
    mean_wave,
    nv1,
    nv2,
    nvqp,
    pop,
)

GENERATORS = {"nv1": nv1, "nv2": nv2, "nvqp": nvqp, "pop": pop}


def draws_at(generate, x, n_scenarios=200_000, random_state=11):
    """Many true outcomes of one context: ``(n_scenarios, n_outcomes)``."""
    model = generate(2)
    dataset = Dataset([x], model.y[:1], model.feature_names, model.outcome_names, model.conditional)
    return dataset.true_scenarios(n_scenarios, random_state).values[0].numpy()


def floored_mean(mean, std):
    """E max(0, N(mean, std))."""
    return mean if std == 0 else mean * norm.cdf(mean / std) + std * norm.pdf(mean / std)


def assert_mean(values, expected):
    """The mean is as expected, to within five of its standard errors."""
    error = 5 * values.std(axis=0) / math.sqrt(len(values)) + 1e-12
    assert (np.abs(values.mean(axis=0) - expected) <= error).all(), (values.mean(axis=0), expected)


@pytest.mark.parametrize("name", GENERATORS)
def test_seeds_repeat_and_differ(name):
    generate = GENERATORS[name]
    first, again, other = (generate(50, random_state=seed) for seed in (4, 4, 5))
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert not np.isin(first.X[first.X > 0], other.X).any()
    assert not np.array_equal(first.y, other.y)


def test_no_global_generator_is_touched():
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    nvqp(10).true_scenarios(3)
    assert np.array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize(
    ("name", "shape"), [("nv1", (1, 1)), ("nv2", (1, 1)), ("nvqp", (4, 6)), ("pop", (3, 15))]
)
def test_shapes_and_names(name, shape):
    dataset = GENERATORS[name](7)
    assert (dataset.X.shape, dataset.y.shape) == ((7, shape[0]), (7, shape[1]))
    assert dataset.feature_names[0] == "x1"
    assert len(dataset.outcome_names) == shape[1]


@pytest.mark.parametrize("generate", [nv1, nv2, nvqp])
def test_clusters_are_halves_in_random_order(generate):
    dataset = generate(2000, random_state=1)
    # The clusters' signs of the last but one feature are three standard deviations apart or more.
    sign = dataset.X[:, -2 if dataset.n_features > 1 else 0] > 0
    assert abs(sign.sum() - 1000) < 15
    assert abs(sign[:1000].sum() - 500) < 80
    assert abs(np.corrcoef(sign[1:], sign[:-1])[0, 1]) < 0.1


def test_contexts_of_the_newsvendors():
    x = nv1(20_000, random_state=2).X[:, 0]
    assert_mean(x, 0.0)
    assert_mean(x**2, 10.0)
    assert_mean((x - 3) ** 2 * (x + 3) ** 2, 43.0 - 4.0)


def test_contexts_of_the_quadratic_newsvendor():
    X = nvqp(20_000, random_state=2).X
    low, high = X[X[:, 1] < 0], X[X[:, 1] > 0]
    assert_mean(low, [-3.0, -4.0, -3.0, -3.0])
    assert_mean(high, [3.0, 4.0, 3.0, 1.0])
    assert np.allclose(low.std(axis=0), [1.0, 1.0, 0.7, 1.0], rtol=0.03)
    assert np.allclose(high.std(axis=0), [1.0, 1.0, 0.7, 2.0], rtol=0.03)


def test_contexts_of_the_portfolio():
    X = pop(40_000, random_state=2).X
    assert_mean(X, floored_mean(1.0, 1.0))
    assert_mean(X == 0, norm.cdf(-1.0))


def nv_curve(x):
    return 5 + abs(abs(6 * x) * math.sin(x) + 0.5 * x * math.sin(6 * x))


@pytest.mark.parametrize("x", [-5.3, -3.1, -0.4, 1.0, 2.2, 3.0])
def test_nv1_given_the_context(x):
    demand = draws_at(nv1, [x])[:, 0]
    curve, std = nv_curve(x), abs(2 * x * math.sin(x))
    assert_mean(demand, floored_mean(curve, std))
    for level in (0.1, 0.5, 0.9):
        assert_mean(demand <= max(0.0, curve + std * norm.ppf(level)), level)


@pytest.mark.parametrize("x", [-5.3, -3.1, -0.4, 1.0, 2.2, 2.99])
def test_nv2_given_the_context(x):
    demand = draws_at(nv2, [x])[:, 0]
    curve, scale = nv_curve(x), abs(x) * math.sin(x)
    parts = [(0.25, 6.0), (0.75, 2.0)]
    assert_mean(
        demand, sum(w * floored_mean(curve + scale * mean, abs(scale)) for w, mean in parts)
    )
    # The valley between the two peaks.
    below = sum(w * norm.cdf(4.0 - mean) for w, mean in parts)
    valley = curve + 4.0 * scale
    if valley > 0:
        assert_mean(demand < valley, below if scale > 0 else 1 - below)


@pytest.mark.parametrize(("generate", "x"), [(nv1, 3.001), (nv1, 4.7), (nv2, 3.0), (nv2, 4.7)])
def test_newsvendor_demand_is_certain_above_three(generate, x):
    assert np.ptp(draws_at(generate, [x], 100)) == 0
    assert draws_at(generate, [x], 1)[0, 0] == pytest.approx(nv_curve(x), rel=1e-14)


def nvqp_curve(x1, x2, x3, x4):
    m1 = max(0.0, 10 + abs(x1) * math.sin(x2) + 4 * math.sin(6 * x3))
    m2 = max(0.0, 3 + 10 * abs(x2) * math.sin(x3) ** 2 + 2 * math.sin(6 * x1))
    m3 = max(0.0, 10 + math.sqrt(4 * abs(x3)) * math.sin(x2) + 4 * math.sin(2 * x4))
    m4 = max(0.0, 7 + 6 * abs(x4) * math.sin(x1) + 2 * math.sin(6 * x2) ** 2)
    return [m1, m2, m3, m4, 5 + m1 + m2, 5 + m2 + m3]


# In the last two a curve is floored: the fourth, and the first, of which the fifth is made.
@pytest.mark.parametrize(
    "x",
    [
        (-3.0, -4.0, -3.0, -3.0),
        (3.0, 4.0, 3.0, 1.0),
        (-1.7, -4.6, -2.4, -4.0),
        (7.5, 4.712, 3.927, 1.0),
    ],
)
def test_nvqp_given_the_context(x):
    """The mean of every item, with the floor, and the distribution of the noise above it."""
    demand = draws_at(nvqp, x)
    m = nvqp_curve(*x)
    mixtures = [
        [(1.0, 1.0, 4.0)],
        [(1.0, 1.0, 2.0)],
        [(0.25, 0.5, 2.0), (0.75, 2.0, 4.0)],
        None,
        [(0.25, 0.5, 4.0), (0.75, 2.0, 4.0)],
        [(1.0, 1.0, 4.0)],
    ]
    for item, mixture in enumerate(mixtures):
        if mixture is None:
            assert_mean(demand[:, item], m[item] + 0.8)
            assert_mean(demand[:, item] == m[item], math.exp(-0.8))
            continue
        mean = sum(w * floored_mean(m[item] + centre, std) for w, centre, std in mixture)
        assert_mean(demand[:, item], mean)
        for noise in (1.0, 4.0, 7.0):
            above = sum(w * norm.sf(noise, centre, std) for w, centre, std in mixture)
            assert_mean(demand[:, item] > m[item] + noise, above)


def test_first_and_last_item_share_their_noise():
    dataset = nvqp(500, random_state=8)
    curves = np.array([nvqp_curve(*x) for x in dataset.X])
    for outcomes in (dataset.y, dataset.true_scenarios(1).values[:, 0].numpy()):
        noise = outcomes - curves
        seen = (outcomes[:, 0] > 0) & (outcomes[:, 5] > 0)
        assert seen.sum() > 400
        assert np.abs(noise[seen, 0] - noise[seen, 5]).max() < 1e-10
        others = np.corrcoef(noise[:, :5].T) - np.eye(5)
        assert np.abs(others).max() < 0.2


@pytest.mark.parametrize("n_assets", [2, 15])
def test_pop_given_the_context(n_assets):
    x = (0.0, 0.7, 1.9)
    noise = draws_at(lambda n: pop(n, n_assets), x)
    for i in range(1, n_assets + 1):
        wave = math.sin(sum(feature ** (2 * i / n_assets) for feature in x))
        noise[:, i - 1] -= 0.3 + wave - mean_wave(n_assets)[i - 1]
    noise /= 0.05
    assert_mean(noise, 0.0)
    assert_mean(noise**2, 0.5 * (16 + 16) + 0.5 * (16 + 1))
    assert_mean(noise > 4.0, 0.5 * norm.sf(2.0) + 0.25)
    # Each asset has a component of its own: signs, which tell it, are not correlated.
    signs = np.corrcoef((noise > 0).T) - np.eye(n_assets)
    assert np.abs(signs).max() < 5 / math.sqrt(len(noise))


def test_components_are_drawn_anew_for_every_row():
    dataset = pop(4000, n_assets=1, random_state=3)
    wave = np.sin((dataset.X**2).sum(axis=1))
    noise = dataset.y[:, 0] - (0.3 + wave - mean_wave(1)[0])
    high = noise > 0
    assert abs(np.corrcoef(high[1:], high[:-1])[0, 1]) < 0.08
    assert abs(np.corrcoef(high, np.arange(4000))[0, 1]) < 0.08


def test_mean_wave_has_closed_forms():
    """For the powers 1 and 2 the integral is a complex normal distribution function."""

    def upper(z):
        return 0.5 * erfc(-z / math.sqrt(2))

    certain = norm.cdf(-1.0)
    for power, curvature, slope in ((1, 1.0 + 0j, 1.0 + 1j), (2, 1.0 - 2j, 1.0 + 0j)):
        root = np.sqrt(curvature)
        integral = np.exp(slope**2 / (2 * curvature) - 0.5) / root * upper(slope / root)
        expected = ((certain + integral) ** 3).imag
        assert mean_wave(2)[power - 1] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_assets", [1, 15, 40])
def test_mean_wave_is_the_mean(n_assets):
    X = pop(200_000, n_assets=1, random_state=9).X
    for i in {1, n_assets // 2 + 1, n_assets}:
        wave = np.sin((X ** (2 * i / n_assets)).sum(axis=1))
        assert_mean(wave, mean_wave(n_assets)[i - 1])


def test_every_asset_returns_the_same_on_average():
    assert_mean(pop(20_000, random_state=5).y, 0.3)


@pytest.mark.parametrize("name", GENERATORS)
def test_outcomes_are_distributed_as_true_scenarios(name):
    """The rank of an outcome among true draws of its context is uniform."""
    dataset = GENERATORS[name](1500, random_state=6)
    n_scenarios = 199
    values = dataset.true_scenarios(n_scenarios, random_state=7).values.numpy()
    below = (values < dataset.y[:, None]).sum(axis=1)
    equal = (values == dataset.y[:, None]).sum(axis=1)
    # Where draws are equal (demand 0, integers) the outcome's place among them is drawn.
    place = np.random.default_rng(8).uniform(size=below.shape) * (equal + 1)
    rank = (below + place) / (n_scenarios + 1)
    for outcome in range(dataset.n_outcomes):
        assert kstest(rank[:, outcome], "uniform").pvalue > 0.002


def test_demand_is_never_negative():
    for generate in (nv1, nv2, nvqp):
        dataset = generate(500)
        assert dataset.y.min() >= 0
        assert float(dataset.true_scenarios(50).values.min()) == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nv1(0), "n_contexts must be .* but is 0"),
        (lambda: nv2(10.5), r"n_contexts must be .* but is 10\.5"),
        (lambda: nvqp("many"), "n_contexts must be .* but is 'many'"),
        (lambda: pop(10, n_assets=-2), "n_assets must be .* but is -2"),
        (lambda: pop(True), "n_contexts must be .* but is True"),
        (lambda: nv1(10, random_state=0.5), r"random_state must be an integer .* but is 0\.5"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        make()
