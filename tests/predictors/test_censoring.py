"""Censored outcomes: Kaplan–Meier weights, likelihoods of bounds, and what each predictor makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm

import forewise as fw
from forewise.exceptions import InvalidInputError
from forewise.predictors import (
    BayesianPredictor,
    BoostingPredictor,
    EmpiricalPredictor,
    EnsemblePredictor,
    ForecastPredictor,
    ForestPredictor,
    GaussianPredictor,
    GaussianProcessPredictor,
    GroupedPredictor,
    MeanField,
    MeanForecast,
    MixturePredictor,
    NeighborPredictor,
    NormalHead,
    PointPredictor,
    Predictor,
    QuantileBoostingPredictor,
    QuantileHead,
    ResidualPredictor,
    StackedPredictor,
    Training,
    completed,
)
from forewise.predictors.censoring import survival_weights
from forewise.predictors.networks.heads import GaussianHead, MixtureHead, log_density_or_tail

SHORT = Training(epochs=40)


def sold_out(
    n_rows: int = 400, seed: int = 0, n_outcomes: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Contexts, demand, sales and which rows are sold out: a third, more stock where x is large."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 2, size=(n_rows, 2)).astype(float)
    level = 20 + 10 * X[:, :1]
    demand = level + 5 * random.normal(size=(n_rows, n_outcomes))
    stock = level + 5 * random.normal(size=demand.shape) + 3
    return X, demand, np.minimum(demand, stock), demand >= stock


def fast_predictors() -> list[Predictor]:
    return [
        EmpiricalPredictor(),
        GroupedPredictor(0),
        NeighborPredictor(),
        ForestPredictor(n_trees=20, n_jobs=1),
        QuantileBoostingPredictor(n_trees=30),
        BoostingPredictor(n_trees=30),
        ResidualPredictor(),
        GaussianProcessPredictor(random_state=0),
        StackedPredictor([EmpiricalPredictor(), NeighborPredictor()]),
        BayesianPredictor(hidden_sizes=(16,), n_members=2, training=SHORT, random_state=0),
        GaussianPredictor(hidden_sizes=(16,), training=SHORT, random_state=0),
    ]


def named(predictor: Predictor) -> str:
    return type(predictor).__name__


# --- Kaplan–Meier weights -------------------------------------------------------------------------


def textbook(weights: np.ndarray, values: np.ndarray, censored: np.ndarray) -> dict[float, float]:
    """P(Y = t) by the product over distinct times, written as in a textbook."""
    surviving, found = 1.0, {}
    for time in np.unique(values[~censored]):
        dying = weights[(values == time) & ~censored].sum()
        at_risk = weights[values >= time].sum()
        if at_risk > 0:
            found[time] = surviving * dying / at_risk
            surviving *= 1 - dying / at_risk
    return found


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_the_product_limit_estimate(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, censored = random.integers(0, 6, 30).astype(float), random.random(30) < 0.4
    weights = random.random(30) * (random.random(30) < 0.7)
    weights /= weights.sum()
    order = np.lexsort((censored, values))
    mass, left_over = survival_weights(weights[None, order], censored[order])
    expected = textbook(weights, values, censored)
    for time, probability in expected.items():
        at = (values[order] == time) & ~censored[order]
        last = weights[order].nonzero()[0][-1]
        found = mass[0, at].sum() - (left_over[0] if at[last] else 0)
        assert found == pytest.approx(probability, abs=1e-12)
    assert mass.sum() == pytest.approx(1)
    assert left_over[0] == pytest.approx(1 - sum(expected.values()), abs=1e-12)


def test_without_censored_rows_weights_stay() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(9), size=4)
    mass, left_over = survival_weights(weights, np.zeros(9, dtype=bool))
    assert np.allclose(mass, weights, atol=1e-15)
    assert np.allclose(left_over, 0, atol=1e-15)


def test_mass_beyond_a_largest_bound_stays_there() -> None:
    mass, left_over = survival_weights(np.full((1, 4), 0.25), np.array([False, True, False, True]))
    # 1/4, then 3/4 spread over two rows at risk, of which one is known.
    assert mass[0].tolist() == pytest.approx([0.25, 0, 0.375, 0.375])
    assert left_over[0] == pytest.approx(0.375)


# --- likelihoods of bounds ------------------------------------------------------------------------


def test_log_survival_is_accurate_far_in_the_tail() -> None:
    bounds = torch.tensor([0.0, 5.0, 40.0, 1000.0], dtype=torch.float64)
    mean = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    found = log_density_or_tail(bounds, mean, torch.zeros(4), torch.ones(4, dtype=torch.bool))
    assert np.allclose(found.detach().numpy(), norm.logsf(bounds.numpy()), rtol=1e-9)
    (gradient,) = torch.autograd.grad(found.sum(), mean)
    # The hazard of the normal, which tends to the bound.
    assert np.allclose(
        gradient.numpy(), np.exp(norm.logpdf(bounds) - norm.logsf(bounds)), rtol=1e-6
    )


@pytest.mark.parametrize("head", [GaussianHead(2), MixtureHead(2, 3)])
def test_censored_loss_of_heads_has_the_gradient_of_finite_differences(head: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(3, 5, head.width, generator=generator, dtype=torch.float64)
    y = torch.randn(5, 2, generator=generator, dtype=torch.float64)
    flags = torch.rand(5, 2, generator=generator) < 0.5
    outputs.requires_grad_()
    assert torch.autograd.gradcheck(lambda o: head.censored_loss(o, y, flags), outputs)
    none = torch.zeros_like(flags)
    plain = head.negative_log_likelihood(outputs, y)
    assert head.censored_loss(outputs, y, none).item() == pytest.approx(plain.item())


def test_mixture_of_alike_components_is_one_gaussian() -> None:
    head, y = MixtureHead(1, 1), torch.tensor([[0.3], [2.0]])
    outputs = torch.tensor([[[0.1, 0.2, 0.0], [0.4, -0.3, 0.0]]])
    flags = torch.tensor([[True], [False]])
    mean, log_variance, _ = head._split(outputs)
    std = (0.5 * log_variance).exp()[0, :, 0, 0].numpy()
    centre = mean[0, :, 0, 0].numpy()
    expected = norm.logsf(0.3, centre[0], std[0]) + norm.logpdf(2.0, centre[1], std[1])
    assert head.censored_loss(outputs, y, flags).item() == pytest.approx(-expected / 2, rel=1e-5)


def test_member_heads_without_bounds_have_their_loss() -> None:
    head, generator = NormalHead(), torch.Generator().manual_seed(0)
    outputs = torch.randn(2, 6, head.width(2), generator=generator)
    y, flags = torch.randn(1, 6, 2, generator=generator), torch.zeros(1, 6, 2, dtype=torch.bool)
    assert torch.allclose(head.censored_loss(outputs, y, flags), head.loss(outputs, y))


# --- predictors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("predictor", fast_predictors(), ids=named)
def test_no_censored_row_changes_nothing(predictor: Predictor) -> None:
    X, demand, _, flags = sold_out(80)
    plain = predictor.fit(X, demand).sample(X, 16, random_state=0).values
    again = (
        predictor.fit(X, demand, censored=np.zeros_like(flags)).sample(X, 16, random_state=0).values
    )
    assert torch.equal(plain, again)


@pytest.mark.parametrize("predictor", fast_predictors(), ids=named)
def test_bounds_are_no_outcomes(predictor: Predictor) -> None:
    """The mean is nearer to that of demand than to that of sales, or of days with stock left."""
    X, demand, sales, flags = sold_out()
    scenarios = predictor.fit(X, sales, censored=flags).sample(X, 64)
    mean = float((scenarios.values[..., 0] * scenarios.weights).sum(1).mean())
    assert abs(mean - demand.mean()) < 0.5 * (demand.mean() - sales.mean())
    assert sales.mean() < demand.mean() - 1


@pytest.mark.parametrize("predictor", fast_predictors()[:4], ids=named)
def test_a_refit_forgets_what_was_censored(predictor: Predictor) -> None:
    X, demand, sales, flags = sold_out(80)
    fresh = predictor.fit(X, demand).sample(X, 16, random_state=0)
    again = predictor.fit(X, sales, censored=flags).fit(X, demand).sample(X, 16, random_state=0)
    assert torch.equal(fresh.values, again.values)


@pytest.mark.parametrize(
    "predictor",
    [ForestPredictor(n_trees=20, n_jobs=1), NeighborPredictor()],
    ids=named,
)
def test_several_outcomes_and_stored_policies(predictor: Predictor, tmp_path: Any) -> None:
    X, demand, sales, flags = sold_out(300, n_outcomes=2)
    learner = fw.DecoupledLearner(fw.Newsvendor(shortage=1.01, excess=1), predictor)
    informed = learner.fit(X, demand).decide(X)
    decided = learner.fit(X, sales, censored=flags).decide(X)
    assert np.abs(decided.mean(0) - informed.mean(0)).max() < 1.2
    learner.policy_.save(tmp_path / "policy")
    assert np.array_equal(fw.load_policy(tmp_path / "policy").decide(X), decided)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_do_not_matter(scale: float) -> None:
    X, _, sales, flags = sold_out(120)
    expected = completed(X, sales, flags)
    assert np.allclose(completed(X, scale * sales, flags), scale * expected, rtol=1e-6)


def test_completions_are_of_the_rows_as_they_are() -> None:
    """Whatever was completed before, and where an array was changed in place since."""
    X, _, sales, flags = sold_out()
    first = completed(X, sales, flags)
    for seed in (1, 2):
        X2, _, sales2, flags2 = sold_out(seed=seed)
        completed(X2, sales2, flags2)
    np.testing.assert_array_equal(completed(X, sales, flags), first)
    sales *= 2
    np.testing.assert_allclose(completed(X, sales, flags), 2 * first)


def test_completed_outcomes_lie_beyond_their_bounds_only() -> None:
    X, demand, sales, flags = sold_out()
    found = completed(X, sales, flags)
    assert (found[flags] >= sales[flags]).all()
    assert np.array_equal(found[~flags], sales[~flags])
    assert abs(found.mean() - demand.mean()) < 0.3 * (demand.mean() - sales.mean())
    assert np.array_equal(completed(X, sales, None), sales)


def test_one_context_has_the_kaplan_meier_quantiles() -> None:
    random = np.random.default_rng(1)
    demand, stock = random.gamma(4, 5, 800), random.gamma(4, 7, 800)
    sales, flags = np.minimum(demand, stock), demand >= stock
    order = np.lexsort((flags, sales))
    mass = survival_weights(np.full((1, 800), 1 / 800), flags[order])[0][0]
    drawn = EmpiricalPredictor().fit(np.zeros((800, 1)), sales, censored=flags).outcomes_[:, 0]
    for level in (0.25, 0.5, 0.75):
        expected = sales[order][np.searchsorted(mass.cumsum(), level)]
        assert np.quantile(drawn, level) == pytest.approx(expected, rel=0.03)


def test_what_nothing_known_lies_beyond_is_counted() -> None:
    X, y = np.zeros((40, 1)), np.arange(40.0)
    sure = EmpiricalPredictor().fit(X, y, censored=y == 0)
    assert sure.undetermined_ == 0
    unsure = EmpiricalPredictor().fit(X, y, censored=y >= 20)
    assert unsure.undetermined_ == pytest.approx(1)


@pytest.mark.parametrize("inference", [None, MeanField()])
@pytest.mark.parametrize("head", [QuantileHead(), NormalHead()])
def test_every_bayesian_network_takes_bounds(inference: Any, head: Any) -> None:
    X, _, sales, flags = sold_out(100)
    settings: dict[str, Any] = {"hidden_sizes": (16,), "n_members": 2, "random_state": 0}
    network = BayesianPredictor(inference=inference, head=head, training=SHORT, **settings)
    assert network.fit(X, sales, censored=flags).sample(X, 8).values.isfinite().all()


@pytest.mark.parametrize(
    "predictor",
    [
        MixturePredictor(hidden_sizes=(16,), training=SHORT, random_state=0),
        EnsemblePredictor(GaussianPredictor(hidden_sizes=(16,), training=SHORT), 2, random_state=0),
    ],
    ids=named,
)
def test_other_networks_take_bounds_to_train_and_to_validate(predictor: Any) -> None:
    X, _, sales, flags = sold_out(150)
    predictor.fit(
        X[:100], sales[:100], X[100:], sales[100:],
        censored=flags[:100], censored_val=flags[100:],
    )  # fmt: skip
    assert predictor.sample(X, 8).values.isfinite().all()


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predictor", "advice"),
    [
        (PointPredictor(training=SHORT), "GaussianPredictor"),
        (GaussianPredictor(n_factors=1, training=SHORT), "n_factors=0"),
        (ForecastPredictor(MeanForecast()), "completed"),
    ],
)
def test_predictors_that_cannot_use_bounds_say_so(predictor: Predictor, advice: str) -> None:
    X, _, sales, flags = sold_out(40, n_outcomes=2)
    with pytest.raises(InvalidInputError, match=advice):
        predictor.fit(X, sales, censored=flags)


def test_every_row_censored_is_refused() -> None:
    X, _, sales, flags = sold_out(40)
    for predictor in (EmpiricalPredictor(), GaussianPredictor(training=SHORT)):
        with pytest.raises(InvalidInputError, match="not sold out"):
            predictor.fit(X, sales, censored=np.ones_like(flags))


@pytest.mark.parametrize("learner", [fw.CombinedLearner, fw.DirectLearner])
def test_learners_through_the_cost_refuse(learner: Any) -> None:
    X, _, sales, flags = sold_out(40)
    with pytest.raises(InvalidInputError, match="DecoupledLearner"):
        learner(fw.Newsvendor(shortage=3, excess=1)).fit(X, sales, censored=flags)
