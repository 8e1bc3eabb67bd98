"""Tables that predictors are fitted to, and what is looked at in their scenarios."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

import forewise as fw


def table(n_rows=150, n_outcomes=2, seed=0, n_features=3):
    """Contexts and outcomes that depend on them, in units far from standardised."""
    random = np.random.default_rng(seed)
    X = 50 + 20 * random.standard_normal((n_rows, n_features))
    y = 300 + 4 * X[:, :1] + 10 * np.arange(1, n_outcomes + 1) * np.sin(X[:, -1:] / 10)
    return X, y + 15 * random.standard_normal((n_rows, n_outcomes))


def values_and_weights(scenarios):
    return scenarios.values.numpy(), scenarios.weights.numpy()


def moments(scenarios):
    """Weighted mean and variance of each context, (n_contexts, n_outcomes)."""
    values, weights = values_and_weights(scenarios)
    mean = np.einsum("bm,bmk->bk", weights, values)
    return mean, np.einsum("bm,bmk->bk", weights, (values - mean[:, None]) ** 2)


def order_quantity(scenarios, level):
    """The decision of a newsvendor with this service level: a weighted quantile."""
    return fw.solve(fw.Newsvendor(shortage=level, excess=1 - level), scenarios).decision.numpy()


def drawn_in_two_units(predictor, X, y, contexts):
    """Scenarios as they are, and where contexts have other units and outcomes are 4 y − 32."""
    scale, shift = np.array([8.0, 0.25, 64.0]), np.array([0.0, 2.0, -64.0])
    plain = clone(predictor).fit(X, y).sample(contexts, 500, random_state=0)
    other = clone(predictor).fit(X * scale + shift, y * 4 - 32)
    return plain, other.sample(contexts * scale + shift, 500, random_state=0)
