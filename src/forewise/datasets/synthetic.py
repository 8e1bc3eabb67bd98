"""The paper's synthetic data NV1, NV2, NVQP and POP, their true distributions, and their problems.

A generator draws contexts, and then one outcome per context from the same `Conditional` that
`Dataset.true_scenarios` draws from.
"""

from __future__ import annotations

import cmath
import math
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

from forewise.datasets.base import Conditional, Dataset
from forewise.exceptions import InvalidInputError
from forewise.problems import Newsvendor, Portfolio, QuadraticNewsvendor
from forewise.validation.arguments import as_finite
from forewise.validation.parameters import as_generator, require_count

# Means and standard deviations of the four features in the two clusters.
_NVQP_MEANS = np.array([[-3.0, -4.0, -3.0, -3.0], [3.0, 4.0, 3.0, 1.0]])
_NVQP_STDS = np.array([[1.0, 1.0, 0.7, 1.0], [1.0, 1.0, 0.7, 2.0]])

_POP_FEATURES = 3
_POP_MEAN = 0.3
_POP_NOISE = 0.05
# A lower mean return would ask for huge holdings.
_LEAST_EXPECTED_RETURN = 0.01


def nv1(n_contexts: int = 1800, random_state: Any = 0) -> Dataset:
    """One item whose demand has Gaussian noise that depends on the context.

        y = max(0, 5 + | |6x| sin x + ½ x sin 6x | + ε),
        ε = 2 |x| sin(x) · N(0, 1) for x ≤ 3, and 0 above

    Half of the contexts are N(−3, 1) and half are N(3, 1), in random order.

    Returns X ``(n_contexts, 1)`` and y ``(n_contexts, 1)``.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.datasets.nv1(n_contexts=100, random_state=0)
    Dataset(n_contexts=100, n_features=1, n_outcomes=1, true distribution known)
    """
    return _newsvendor(n_contexts, random_state, _nv1_demand)


def nv2(n_contexts: int = 1800, random_state: Any = 0) -> Dataset:
    """One item whose demand has bimodal noise that depends on the context.

        y = max(0, 5 + | |6x| sin x + ½ x sin 6x | + ε),
        ε = |x| sin(x) · n for x < 3, and 0 above,    n ~ ¼ N(6, 1) + ¾ N(2, 1)

    Contexts as in `nv1`. The noise does not have mean zero: E[n] = 3.

    Returns X ``(n_contexts, 1)`` and y ``(n_contexts, 1)``.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.datasets.nv2(n_contexts=100, random_state=0).true_scenarios(50)
    Scenarios(n_contexts=100, n_scenarios=50, n_outcomes=1, equal weights, torch.float64)
    """
    return _newsvendor(n_contexts, random_state, _nv2_demand)


def nvqp(n_contexts: int = 4000, random_state: Any = 0) -> Dataset:
    """Six items whose demands depend on four features and in part on each other.

    With noise-free parts, m1 to m4 floored at 0,

        m1 = 10 + |x1| sin x2 + 4 sin 6x3,          m2 = 3 + 10 |x2| sin² x3 + 2 sin 6x1,
        m3 = 10 + √(4|x3|) sin x2 + 4 sin 2x4,      m4 = 7 + 6 |x4| sin x1 + 2 sin² 6x2,
        m5 = 5 + m1 + m2,                           m6 = 5 + m2 + m3,

    the demand is y_i = max(0, m_i + ε_i), where N(mean, standard deviation) and

        ε1 = ε6 ~ N(1, 4) (one draw for both),      ε2 ~ N(1, 2),
        ε3 ~ ¼ N(0.5, 2) + ¾ N(2, 4),               ε4 ~ Poisson(0.8),
        ε5 ~ ¼ N(0.5, 4) + ¾ N(2, 4)

    Half of the contexts are around (−3, −4, −3, −3) with standard deviations (1, 1, 0.7, 1), half
    around (3, 4, 3, 1) with (1, 1, 0.7, 2), in random order.

    Returns X ``(n_contexts, 4)`` and y ``(n_contexts, 6)``.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.datasets.nvqp(n_contexts=100, random_state=0)
    Dataset(n_contexts=100, n_features=4, n_outcomes=6, true distribution known)
    """
    n_contexts, generator = require_count("n_contexts", n_contexts, 1), as_generator(random_state)
    cluster = _halves(n_contexts, generator)
    X = generator.normal(_NVQP_MEANS[cluster], _NVQP_STDS[cluster])
    return _with_outcomes(X, _nvqp_demand, generator, "demand", 6)


def pop(n_contexts: int = 1500, n_assets: int = 15, random_state: Any = 0) -> Dataset:
    """Assets whose returns are sines of three features, with bimodal noise.

        s_i = Σ_k x_k^(2i/n_assets),    x_k = max(N(1, 1), 0),    k = 1, 2, 3
        y_i = 0.3 + sin s_i − E[sin s_i] + 0.05 · ε_i,    ε_i ~ ½ N(−4, 4) + ½ N(4, 1)

    where N(mean, standard deviation), drawn anew for each row and asset. E[sin s_i] is the exact
    expectation over contexts (`mean_wave`), so that every asset returns 0.3 on average.

    Returns X ``(n_contexts, 3)`` and y ``(n_contexts, n_assets)``.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.datasets.pop(n_contexts=100, n_assets=5, random_state=0)
    Dataset(n_contexts=100, n_features=3, n_outcomes=5, true distribution known)
    """
    n_contexts, generator = require_count("n_contexts", n_contexts, 1), as_generator(random_state)
    n_assets = require_count("n_assets", n_assets, 1)
    X = np.maximum(generator.normal(1.0, 1.0, (n_contexts, _POP_FEATURES)), 0.0)
    return _with_outcomes(X, partial(_pop_returns, n_assets), generator, "asset", n_assets)


@lru_cache(maxsize=32)
def mean_wave(n_assets: int) -> tuple[float, ...]:
    """E[sin s_i] of each asset of `pop`, over the distribution of contexts.

    The features are independent and alike, so with a = 2i/n_assets

        E[sin s_i] = Im E[exp(j x^a)]³,
        E[exp(j x^a)] = Φ(−1) + ∫₀^∞ φ(x − 1) exp(j x^a) dx

    which is computed to about 12 digits.

    Examples
    --------
    >>> import forewise as fw
    >>> [round(mean, 4) for mean in fw.datasets.mean_wave(3)]
    [0.1592, 0.0391, 0.0837]
    """
    return tuple(_mean_wave(2 * asset / n_assets) for asset in range(1, n_assets + 1))


def _mean_wave(power: float) -> float:
    # With t = x^root the integrand is smooth at 0, also where x^power with power < 1 is not.
    root = min(power, 1.0)

    def integrand(t: float) -> complex:
        x = t ** (1 / root)
        density = math.exp(-0.5 * (x - 1.0) ** 2) / math.sqrt(2 * math.pi)
        return density * cmath.exp(1j * t ** (power / root)) * x ** (1 - root) / root

    # Beyond x = 10 less than 1e-18 of the features are left.
    integral, _ = quad(
        integrand, 0.0, 10.0**root, epsabs=1e-13, epsrel=1e-13, limit=500, complex_func=True
    )
    characteristic: complex = ndtr(-1.0) + integral
    return float((characteristic**_POP_FEATURES).imag)


def nv_problem() -> Newsvendor:
    """Problem of NV1 and NV2: shortage 100, excess 900, so the 0.1 quantile of demand.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.datasets.nv_problem()
    Newsvendor(shortage=100, excess=900)
    """
    return Newsvendor(shortage=100.0, excess=900.0)


def nvqp_problem(budget: float = 14400.0) -> QuadraticNewsvendor:
    """Problem of NVQP: six items with quadratic costs that share a budget.

    The paper's budget binds in about 4 % of the contexts; 6000 makes it matter.

    Examples
    --------
    >>> import forewise as fw
    >>> data = fw.datasets.nvqp(2, random_state=0)
    >>> problem = fw.datasets.nvqp_problem(budget=6000.0)
    >>> fw.solve(problem, data.true_scenarios(20)).decision.shape
    torch.Size([2, 6])
    """
    return QuadraticNewsvendor(
        quadratic=[6.0, 4.0, 6.0, 6.0, 8.0, 8.0],
        linear=[37.0, 40.0, 32.0, 50.0, 56.0, 32.0],
        shortage_quadratic=[24.0, 28.0, 17.0, 15.0, 21.0, 24.0],
        shortage=[1644.0, 687.0, 1369.0, 1784.0, 1682.0, 1246.0],
        excess_quadratic=[17.0, 13.0, 14.0, 8.0, 15.0, 20.0],
        excess=[172.0, 186.0, 157.0, 127.0, 84.0, 90.0],
        price=[53.0, 109.0, 64.0, 50.0, 54.0, 73.0],
        budget=budget,
    )


def pop_problem(y_train: Any, minimum_return: float = 10000.0) -> Portfolio:
    """Problem of POP: the least expected loss for a return of `minimum_return`.

    An asset's expected return is its mean in y_train ``(n_contexts, n_assets)``, at least 0.01.

    Examples
    --------
    >>> import forewise as fw
    >>> data = fw.datasets.pop(100, n_assets=5, random_state=0)
    >>> problem = fw.datasets.pop_problem(data.y)
    >>> fw.solve(problem, data[:2].true_scenarios(20)).decision.shape
    torch.Size([2, 5])
    """
    returns = as_finite("y_train", y_train)
    if returns.ndim != 2 or 0 in returns.shape:
        raise InvalidInputError(
            "y_train must have shape (n_contexts, n_assets), all at least 1, but has shape "
            f"{tuple(returns.shape)}"
        )
    return Portfolio(returns.mean(dim=0).clamp_min(_LEAST_EXPECTED_RETURN), minimum_return)


def _newsvendor(n_contexts: int, random_state: Any, demand: Conditional) -> Dataset:
    n_contexts, generator = require_count("n_contexts", n_contexts, 1), as_generator(random_state)
    centre = np.array([-3.0, 3.0])[_halves(n_contexts, generator)]
    return _with_outcomes(generator.normal(centre, 1.0)[:, None], demand, generator, "demand", 1)


def _with_outcomes(
    X: np.ndarray,
    conditional: Conditional,
    generator: np.random.Generator,
    outcome: str,
    n_outcomes: int,
) -> Dataset:
    """One outcome per context, and the names of the columns."""
    return Dataset(
        X,
        conditional(X, 1, generator)[:, 0],
        feature_names=[f"x{k}" for k in range(1, X.shape[1] + 1)],
        outcome_names=[f"{outcome}{i}" for i in range(1, n_outcomes + 1)],
        conditional=conditional,
    )


def _halves(n_contexts: int, generator: np.random.Generator) -> np.ndarray:
    """Cluster 0 or 1 of each row: half and half, in random order."""
    return generator.permutation(np.arange(n_contexts) * 2 // n_contexts)


def _nv_curve(x: np.ndarray) -> np.ndarray:
    return 5.0 + np.abs(np.abs(6.0 * x) * np.sin(x) + 0.5 * x * np.sin(6.0 * x))


def _nv1_demand(X: np.ndarray, n_scenarios: int, generator: np.random.Generator) -> np.ndarray:
    x = X[:, :, None]
    scale = np.where(x <= 3.0, 2.0 * np.abs(x) * np.sin(x), 0.0)
    noise = generator.normal(size=(len(X), n_scenarios, 1))
    return np.maximum(_nv_curve(x) + scale * noise, 0.0)


def _nv2_demand(X: np.ndarray, n_scenarios: int, generator: np.random.Generator) -> np.ndarray:
    x = X[:, :, None]
    scale = np.where(x < 3.0, np.abs(x) * np.sin(x), 0.0)
    noise = _normal_mixture(generator, (len(X), n_scenarios, 1), 0.25, (6.0, 1.0), (2.0, 1.0))
    return np.maximum(_nv_curve(x) + scale * noise, 0.0)


def _nvqp_demand(X: np.ndarray, n_scenarios: int, generator: np.random.Generator) -> np.ndarray:
    shape = (len(X), n_scenarios)
    noise = np.empty((*shape, 6))
    noise[..., 0] = generator.normal(1.0, 4.0, shape)
    noise[..., 1] = generator.normal(1.0, 2.0, shape)
    noise[..., 2] = _normal_mixture(generator, shape, 0.25, (0.5, 2.0), (2.0, 4.0))
    noise[..., 3] = generator.poisson(0.8, shape)
    noise[..., 4] = _normal_mixture(generator, shape, 0.25, (0.5, 4.0), (2.0, 4.0))
    noise[..., 5] = noise[..., 0]
    noise += _nvqp_curves(X)[:, None]
    return np.maximum(noise, 0.0, out=noise)


def _nvqp_curves(X: np.ndarray) -> np.ndarray:
    x1, x2, x3, x4 = X.T
    first = 10.0 + np.abs(x1) * np.sin(x2) + 4.0 * np.sin(6.0 * x3)
    second = 3.0 + 10.0 * np.abs(x2) * np.sin(x3) ** 2 + 2.0 * np.sin(6.0 * x1)
    third = 10.0 + np.sqrt(4.0 * np.abs(x3)) * np.sin(x2) + 4.0 * np.sin(2.0 * x4)
    fourth = 7.0 + 6.0 * np.abs(x4) * np.sin(x1) + 2.0 * np.sin(6.0 * x2) ** 2
    m1, m2, m3, m4 = np.maximum([first, second, third, fourth], 0.0)
    return np.stack([m1, m2, m3, m4, 5.0 + m1 + m2, 5.0 + m2 + m3], axis=-1)


def _pop_returns(
    n_assets: int, X: np.ndarray, n_scenarios: int, generator: np.random.Generator
) -> np.ndarray:
    powers = 2.0 * np.arange(1, n_assets + 1) / n_assets
    phase = (X[:, :, None] ** powers).sum(axis=1)
    curve = _POP_MEAN + np.sin(phase) - np.array(mean_wave(n_assets))
    shape = (len(X), n_scenarios, n_assets)
    noise = _normal_mixture(generator, shape, 0.5, (-4.0, 4.0), (4.0, 1.0))
    return curve[:, None] + _POP_NOISE * noise


def _normal_mixture(
    generator: np.random.Generator,
    shape: tuple[int, ...],
    probability: float,
    first: tuple[float, float],
    second: tuple[float, float],
) -> np.ndarray:
    """Mixture of two normals, each (mean, standard deviation); `probability` is the first's."""
    component = (generator.random(shape) >= probability).astype(int)
    means, stds = np.array([first, second]).T
    return means[component] + stds[component] * generator.normal(size=shape)
