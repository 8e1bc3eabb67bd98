"""Gaussian process regression: the predictor, and the marginal likelihood that it maximises."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from forewise.exceptions import InvalidInputError
from forewise.predictors.sampling import fixed_blocks, mean_and_std, normal_draws, standardise
from forewise.predictors.trees import CompletingPredictor
from forewise.scenarios import Scenarios
from forewise.validation.parameters import (
    as_random_state,
    require_bounds,
    require_count,
    require_positive,
)

# With more rows than the first, restarts are made on as many as the second.
_MANY_ROWS, _FEW_ROWS = 1000, 400
Kernel = tuple[float, float]  # length scale ℓ and noise s²


@dataclass(eq=False, repr=False)
class GaussianProcessPredictor(CompletingPredictor):
    """A Gaussian process for each outcome: normal scenarios, wider where data are scarce.

    In standardised units, with ℓ and s² of the highest marginal likelihood,

        y = f(x) + noise,   f ~ GP(0, exp(-|x - x'|² / 2ℓ²)),   noise ~ N(0, s²)

        scenario j of x:   mean_f(x) + √(var_f(x) + s²) ε_j,     ε_j ~ N(0, 1)

    Outcomes are independent of each other given the context. Time grows with the cube of the rows.

    When to use: up to 2,000 rows, smooth dependence on the context, the same noise everywhere.

    Parameters
    ----------
    n_restarts : int
        Further searches for ℓ and s², from random starts. With more than 1,000 rows they are made
        on 400 of them, and the best result is refined on all.
    noise_bounds, length_scale_bounds : pairs of float
        Lowest and highest s² and ℓ, in standardised units. Ending at a bound gives no warning.
    alpha : float
        Added to the diagonal of the training covariance, in standardised units; not part of the
        scenarios' variance, as in scikit-learn.
    max_rows : int or None
        With more training rows than this, that many are drawn at random. None takes all.

    Examples
    --------
    The spread grows where there are no data:

    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> y = np.sin(X) + 0.1 * np.random.default_rng(0).normal(size=X.shape)
    >>> process = fw.GaussianProcessPredictor().fit(X, y)
    >>> near, far = process.sample([[3.0], [9.0]], 500, random_state=0).values.std(1)
    >>> bool(near < 0.2 < far)
    True
    """

    n_restarts: int = 0
    noise_bounds: tuple[float, float] = (0.01, 100.0)
    length_scale_bounds: tuple[float, float] = (1e-2, 1e4)
    alpha: float = 1e-10
    max_rows: int | None = 2000
    random_state: Any = 0

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        require_count("n_restarts", self.n_restarts, at_least=0)
        noise = require_bounds("noise_bounds", self.noise_bounds)
        length_scale = require_bounds("length_scale_bounds", self.length_scale_bounds)
        require_positive("alpha", self.alpha)
        random = as_random_state(self.random_state)
        if self.max_rows is not None:
            max_rows = require_count("max_rows", self.max_rows, at_least=1)
            if len(X) > max_rows:
                rows = np.sort(random.choice(len(X), max_rows, replace=False))
                X, y = X[rows], y[rows]
        self.context_mean_, self.context_std_ = mean_and_std(X)
        self.outcome_mean_, self.outcome_std_ = mean_and_std(y)
        self.contexts_ = standardise(X, self.context_mean_, self.context_std_)
        targets = standardise(y, self.outcome_mean_, self.outcome_std_)
        squared = cdist(self.contexts_, self.contexts_, "sqeuclidean")
        models = [MarginalLikelihood(squared, target, self.alpha) for target in targets.T]
        bounds = np.log([length_scale, noise])
        found = [best_kernel(model, bounds, self.n_restarts, random) for model in models]
        failed = sum(not converged for _, converged in found)
        if failed:
            warnings.warn(
                f"{failed} search(es) for length scale and noise stopped before they converged, "
                "and the best values found are used: try other bounds or more n_restarts",
                ConvergenceWarning,
                stacklevel=3,
            )
        try:
            factors = [m.factor(kernel) for m, (kernel, _) in zip(models, found, strict=True)]
        except np.linalg.LinAlgError as error:
            raise InvalidInputError(
                f"the covariance of the training rows cannot be factorised with alpha="
                f"{self.alpha!r} and noise_bounds={self.noise_bounds!r}: raise either"
            ) from error
        self.length_scale_, self.noise_ = np.array([kernel for kernel, _ in found]).T.copy()
        self.cholesky_ = np.stack([factor for _, factor, _ in factors])
        self.coefficients_ = np.stack([coefficients for _, _, coefficients in factors])

    def epistemic_aleatoric(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Variances (.., n_outcomes) of the curve, which more data would reduce, and the noise."""
        variance = self._mean_and_variance(self.check_contexts(X))[1]
        return variance, np.broadcast_to(self._noise_variance(), variance.shape).copy()

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        draws = normal_draws(n_scenarios, self.n_outcomes_, random)
        mean, variance = self._mean_and_variance(X)
        spread = np.sqrt(variance + self._noise_variance())
        return Scenarios(mean[:, None] + spread[:, None] * draws)

    def _noise_variance(self) -> np.ndarray:
        return self.noise_ * self.outcome_std_**2

    def _mean_and_variance(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the curve at each context, both (n_contexts, n_outcomes)."""
        contexts = standardise(X, self.context_mean_, self.context_std_)
        mean = np.empty((len(X), len(self.noise_)))
        variance = np.empty_like(mean)
        for part, block in fixed_blocks(contexts):
            kept = slice(part.stop - part.start)
            squared = cdist(block, self.contexts_, "sqeuclidean")
            for outcome, scale in enumerate(self.length_scale_):
                covariance = np.exp(-0.5 * squared / scale**2)
                # Not as a product of matrices, which rounds by where a context stands.
                mean[part, outcome] = (covariance * self.coefficients_[outcome]).sum(axis=1)[kept]
                factor = self.cholesky_[outcome]
                known = solve_triangular(factor, covariance.T, lower=True, check_finite=False)
                variance[part, outcome] = 1 - (known**2).sum(axis=0)[kept]
        # Rounding may take a variance of almost nothing below it.
        variance = variance.clip(min=0)
        return self.outcome_mean_ + mean * self.outcome_std_, variance * self.outcome_std_**2


class MarginalLikelihood:
    """The marginal likelihood of outcomes at known points, as a function of the kernel (ℓ, s²).

    Up to a constant its negative logarithm is ``½ yᵀ K⁻¹ y + ½ log det K``, with
    ``K = exp(-d² / 2ℓ²) + (s² + alpha) I``. The constructor takes the squared distances d² of the
    points (n_rows, n_rows), the outcomes y (n_rows,) and alpha.
    """

    def __init__(self, squared_distances: np.ndarray, target: np.ndarray, alpha: float) -> None:
        self.squared_distances, self.target, self.alpha = squared_distances, target, alpha

    def factor(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Covariance without noise, Cholesky factor of K, K⁻¹ y; LinAlgError if there is none."""
        length_scale, noise = kernel
        covariance = np.exp(-0.5 / length_scale**2 * self.squared_distances)
        noisy = covariance.copy(order="F")
        noisy.flat[:: len(noisy) + 1] += noise + self.alpha
        factor = cholesky(noisy, lower=True, overwrite_a=True, check_finite=False)
        return covariance, factor, cho_solve((factor, True), self.target, check_finite=False)

    def negative_log(self, kernel: Kernel) -> float:
        """The negative logarithm, up to a constant; infinite where K has no factor."""
        try:
            return self._value(*self.factor(kernel)[1:])
        except np.linalg.LinAlgError:
            return np.inf

    def negative_log_and_gradient(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """The same with its gradient, both by the logarithms of length scale and noise."""
        length_scale, noise = np.exp(logs)
        try:
            by_length, factor, weights = self.factor((length_scale, noise))
        except np.linalg.LinAlgError:
            return np.inf, np.zeros(2)  # the search turns back
        inverse, _ = dpotri(factor, lower=True)  # zero above the diagonal, as the factor is
        by_length *= self.squared_distances
        by_length /= length_scale**2
        gradient = [
            # The diagonal has no part in the trace: a point is at no distance from itself.
            np.vdot(inverse.T, by_length) - 0.5 * weights @ by_length @ weights,
            0.5 * noise * (np.trace(inverse) - weights @ weights),
        ]
        return self._value(factor, weights), np.array(gradient)

    def search(self, bounds: np.ndarray, starts: Iterable[Kernel]) -> tuple[Kernel, bool]:
        """The kernel of the highest likelihood found, and whether its search converged.

        `bounds` (2, 2) are the logarithms of lowest and highest length scale, and of the noise.
        """
        evaluate, method = self.negative_log_and_gradient, "L-BFGS-B"
        searches = [
            minimize(evaluate, np.log(start), jac=True, method=method, bounds=bounds)
            for start in starts
        ]
        best = min(searches, key=lambda search: search.fun)
        return tuple(np.exp(best.x).tolist()), bool(best.success)

    def on_rows(self, rows: np.ndarray) -> MarginalLikelihood:
        """That of some of the rows."""
        distances = self.squared_distances[np.ix_(rows, rows)]
        return MarginalLikelihood(distances, self.target[rows], self.alpha)

    def _value(self, factor: np.ndarray, weights: np.ndarray) -> float:
        return float(0.5 * self.target @ weights + np.log(np.diag(factor)).sum())


def best_kernel(
    likelihood: MarginalLikelihood,
    bounds: np.ndarray,
    n_restarts: int,
    random: np.random.RandomState,
) -> tuple[Kernel, bool]:
    """The kernel of the highest likelihood, and whether the search for it converged.

    The first start is 1, or the bound nearest to it. With many rows, restarts are made on a few.
    """
    drawn = [np.clip(0.0, *bounds.T), *(random.uniform(*bounds.T) for _ in range(n_restarts))]
    starts: list[Kernel] = [tuple(np.exp(start).tolist()) for start in drawn]
    n_rows = len(likelihood.target)
    if n_restarts > 0 and n_rows > _MANY_ROWS:
        few = likelihood.on_rows(np.sort(random.choice(n_rows, _FEW_ROWS, replace=False)))
        ends = [few.search(bounds, [start])[0] for start in starts]
        starts = [starts[0], min(ends, key=likelihood.negative_log)]
    return likelihood.search(bounds, starts)
