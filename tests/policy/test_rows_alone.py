"""A context has to the bit the decision that it has alone, in whatever table it stands."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

import forewise as fw

N = 150
BRIEF = fw.Training(epochs=1, batch_size=64)
NETWORK = {"training": BRIEF, "random_state": 0}
MEAN_FIELD, NORMAL = fw.predictors.MeanField(), fw.predictors.NormalHead()
LINEAR = fw.predictors.LinearEmbedding()


def table(n, n_outcomes, n_features, seed=0):
    random = np.random.default_rng(seed)
    X = 50 + 20 * random.standard_normal((n, n_features))
    y = 300 + 4 * X[:, :1] + 15 * random.standard_normal((n, n_outcomes))
    return X, y


# Widths that are no multiple of what vector instructions take at a time are the hard ones.
PREDICTORS = {
    "default": fw.BayesianPredictor(**NETWORK),
    "default, odd": fw.BayesianPredictor((17, 9), 3, **NETWORK),
    "default, mean field": fw.BayesianPredictor((9,), inference=MEAN_FIELD, **NETWORK),
    "default, linear": fw.BayesianPredictor((), 3, head=NORMAL, embedding=LINEAR, **NETWORK),
    "default, ensemble": fw.EnsemblePredictor(
        fw.BayesianPredictor((9,), 3, training=BRIEF), 2, random_state=0
    ),
    "Bayesian": fw.predictors.MeanFieldPredictor(**NETWORK),
    "Bayesian, odd": fw.predictors.MeanFieldPredictor((17, 9), n_factors=2, **NETWORK),
    "Bayesian, Fourier": fw.predictors.MeanFieldPredictor(
        (6,), encoding=fw.predictors.FourierFeatures(3), **NETWORK
    ),
    "Bayesian, cautious": fw.predictors.MeanFieldPredictor(
        (9,), off_support=fw.predictors.OffSupportFallback(), **NETWORK
    ),
    "Bayesian, held": fw.predictors.MeanFieldPredictor((), extrapolate=False, **NETWORK),
    "mixture": fw.MixturePredictor(3, (5,), **NETWORK),
    "Gaussian": fw.GaussianPredictor((17, 9), **NETWORK),
    "point": fw.PointPredictor((9,), **NETWORK),
    "ensemble": fw.EnsemblePredictor(
        fw.predictors.MeanFieldPredictor((6,), training=BRIEF), n_members=3, random_state=0
    ),
    "Gaussian process": fw.GaussianProcessPredictor(),
    "empirical": fw.EmpiricalPredictor(),
    "neighbours": fw.NeighborPredictor(kernel="epanechnikov"),
    "forest": fw.ForestPredictor(n_trees=20),
    "boosting": fw.BoostingPredictor(n_trees=10),
    "quantile boosting": fw.QuantileBoostingPredictor(n_trees=10),
    "linear": fw.ResidualPredictor(),
    "ridge": fw.ResidualPredictor(Ridge()),
    "stacked": fw.predictors.StackedPredictor(
        [fw.BayesianPredictor((9,), training=BRIEF), fw.ForestPredictor(n_trees=9)]
    ),
    "boosting and errors": fw.ResidualPredictor(fw.BoostingPredictor(n_trees=10)),
}


def cuts(n=N):
    """Rows alone, small and large tables, another order."""
    order = np.random.default_rng(3).permutation(n)
    return [order[:1], order[1:2], order[2:3], order[3:10], order[: n - 20], order]


@pytest.mark.parametrize("n_features", [1, 30])
@pytest.mark.parametrize("name", PREDICTORS)
def test_scenarios_are_those_of_the_row_alone(name, n_features):
    predictor = PREDICTORS[name].fit(*table(80, 3, n_features))
    X, _ = table(N, 3, n_features, seed=1)
    together = predictor.sample(X, 33, random_state=0)
    for rows in cuts():
        some = predictor.sample(X[rows], 33, random_state=0)
        assert torch.equal(some.values, together.values[rows])
        assert torch.equal(some.weights, together.weights[rows])


def test_the_parts_of_the_variance_are_those_of_the_row_alone():
    X, _ = table(N, 3, 7, seed=1)
    for name in ("default, odd", "Bayesian, odd", "ensemble", "Gaussian process"):
        predictor = PREDICTORS[name].fit(*table(80, 3, 7))
        together = predictor.epistemic_aleatoric(X)
        for rows in cuts():
            for some, every in zip(predictor.epistemic_aleatoric(X[rows]), together, strict=True):
                np.testing.assert_array_equal(some, every[rows])


def quadratic():
    return fw.QuadraticNewsvendor(
        [1.0, 2.0], 0.0, 1.0, [9.0, 4.0], 1.0, [1.0, 2.0], price=[1.0, 1.0], budget=700.0
    )


def certain():
    """Linear in the outcome: decided from the mean of the scenarios."""
    z, y = cp.Variable(2, nonneg=True), cp.Parameter(2)
    cost = cp.sum_squares(z - 300) + y @ z
    return fw.CvxpyProblem(cp.Minimize(cost), [cp.sum(z) <= 400], decision=z, outcome=y)


def stocked():
    """Two steps with a stock between them."""
    z, y = cp.Variable(2, nonneg=True), cp.Parameter(2)
    stock, bought = cp.Variable(2, nonneg=True), cp.Variable(2, nonneg=True)
    balance = [stock[0] == z[0] - y[0] + bought[0], stock[1] == stock[0] + z[1] - y[1] + bought[1]]
    cost = cp.sum(z) + 4 * cp.sum(bought) + 0.1 * cp.sum(stock)
    return fw.CvxpyProblem(cp.Minimize(cost), balance, decision=z, outcome=y)


PROBLEMS = {
    "newsvendor": lambda: fw.Newsvendor(1.0, 9.0),
    "quadratic": quadratic,
    "portfolio": lambda: fw.Portfolio([1.0, 0.5], 0.5, budget=1.0),
    "risk": lambda: fw.Newsvendor(1.0, 9.0).with_risk(fw.CVaR(0.8)),
    "stock": stocked,
    "certain": certain,
}


def learner(kind, problem):
    network = fw.BayesianPredictor((9,), **NETWORK)
    if kind == "decoupled":
        return fw.DecoupledLearner(problem, network)
    if kind == "combined":
        return fw.CombinedLearner(problem, network, n_scenarios=4, pretraining=False)
    if kind == "auto":
        candidates = [network, fw.GaussianProcessPredictor(random_state=0)]
        return fw.AutoLearner(problem, candidates, n_folds=2, random_state=0)
    return fw.DirectLearner(problem, fw.PointPredictor((9,), **NETWORK))


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (problem, kind)
        for problem in PROBLEMS
        for kind in ("decoupled", "combined", "direct", "auto")
        if (problem, kind) != ("risk", "direct")  # no distribution, no risk
    ],
)
@pytest.mark.filterwarnings("ignore:uncertainty cannot change")
def test_decisions_are_those_of_the_row_alone(problem, kind):
    fitted = learner(kind, PROBLEMS[problem]()).fit(*table(80, 2, 3))
    X, _ = table(N, 2, 3, seed=1)
    together = fitted.decide(X, 16)
    for rows in cuts():
        np.testing.assert_array_equal(fitted.decide(X[rows], 16), together[rows])
