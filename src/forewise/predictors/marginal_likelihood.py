"""How well a Gaussian process explains its data, and the kernel that explains them best.

May import: nothing of forewise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

# With more rows than the first, restarts are made on as many as the second.
_MANY_ROWS, _FEW_ROWS = 1000, 400


class SquaredExponential(NamedTuple):
    """Covariance exp(-d² / 2ℓ²) of two points at distance d, and noise of variance s² on each."""

    length_scale: float
    noise: float

    def covariance(self, squared_distances: np.ndarray) -> np.ndarray:
        """Of the curve alone, without the noise."""
        return np.exp(-0.5 / self.length_scale**2 * squared_distances)


class Bounds(NamedTuple):
    """Lowest and highest length scale and noise of a search."""

    length_scale: tuple[float, float]
    noise: tuple[float, float]

    def logs(self) -> np.ndarray:
        """Array (2, 2): a row for the length scale and one for the noise."""
        return np.log([self.length_scale, self.noise])

    def starts(self, n_random: int, random: np.random.RandomState) -> list[SquaredExponential]:
        """At 1, or at the bound that is nearest to it; then random ones, uniform in the log."""
        logs = self.logs()
        drawn = [np.clip(0.0, *logs.T), *(random.uniform(*logs.T) for _ in range(n_random))]
        return [SquaredExponential(*np.exp(start).tolist()) for start in drawn]


class Evidence:
    """The marginal likelihood of outcomes at known points, as a function of the kernel.

    Up to a constant its negative logarithm is, with K the covariance of the points, noise and
    `alpha` on its diagonal,

        ½ yᵀ K⁻¹ y + ½ log det K

    A look at it costs a Cholesky factor and a triangle of K⁻¹, n³ multiplications together, and
    gives the gradient too.

    Parameters
    ----------
    squared_distances : array (n_rows, n_rows)
    target : array (n_rows,)
    alpha : float
    """

    def __init__(self, squared_distances: np.ndarray, target: np.ndarray, alpha: float) -> None:
        self._squared_distances = squared_distances
        self._target = target
        self._alpha = alpha

    @property
    def n_rows(self) -> int:
        """How many outcomes there are."""
        return len(self._target)

    def factor(self, kernel: SquaredExponential) -> tuple[np.ndarray, np.ndarray]:
        """Lower Cholesky factor of K, and K⁻¹ y; LinAlgError if K is not positive definite."""
        return self._factor(kernel, kernel.covariance(self._squared_distances))

    def surprise(self, kernel: SquaredExponential) -> float:
        """The negative logarithm, up to a constant; infinite where K has no factor."""
        try:
            factor, weights = self.factor(kernel)
        except np.linalg.LinAlgError:
            return np.inf
        return self._value(factor, weights)

    def search(
        self, bounds: Bounds, starts: Iterable[SquaredExponential]
    ) -> tuple[SquaredExponential, bool]:
        """The kernel of the highest likelihood that is found, and whether its search converged."""
        searches = [
            minimize(
                self._negative_logarithm,
                np.log(start),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds.logs(),
            )
            for start in starts
        ]
        best = min(searches, key=lambda search: search.fun)
        return SquaredExponential(*np.exp(best.x).tolist()), bool(best.success)

    def on_rows(self, rows: np.ndarray) -> Evidence:
        """That of some of the rows."""
        return Evidence(
            self._squared_distances[np.ix_(rows, rows)], self._target[rows], self._alpha
        )

    def _negative_logarithm(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """And its gradient; both by the logarithms of length scale and noise."""
        kernel = SquaredExponential(*np.exp(logs))
        covariance = kernel.covariance(self._squared_distances)
        try:
            factor, weights = self._factor(kernel, covariance)
        except np.linalg.LinAlgError:
            # The search turns back from where nothing can be said.
            return np.inf, np.zeros(2)
        inverse, _ = dpotri(factor, lower=True)  # zero above the diagonal, as the factor is
        by_length = covariance
        by_length *= self._squared_distances
        by_length /= kernel.length_scale**2
        gradient = [
            # The diagonal has no part in the trace: a point is at no distance from itself.
            np.vdot(inverse.T, by_length) - 0.5 * weights @ by_length @ weights,
            0.5 * kernel.noise * (np.trace(inverse) - weights @ weights),
        ]
        return self._value(factor, weights), np.array(gradient)

    def _value(self, factor: np.ndarray, weights: np.ndarray) -> float:
        return float(0.5 * self._target @ weights + np.log(np.diag(factor)).sum())

    def _factor(
        self, kernel: SquaredExponential, covariance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        noisy = covariance.copy(order="F")
        noisy.flat[:: len(noisy) + 1] += kernel.noise + self._alpha
        factor = cholesky(noisy, lower=True, overwrite_a=True, check_finite=False)
        return factor, cho_solve((factor, True), self._target, check_finite=False)


def best_kernel(
    evidence: Evidence, bounds: Bounds, n_restarts: int, random: np.random.RandomState
) -> tuple[SquaredExponential, bool]:
    """The kernel that explains the data best, and whether the search for it converged.

    Searches on all rows cost the cube of their number, and most of them end at the same place:
    with many rows all start on a few, and only the best of their ends is searched from on all.
    """
    starts = bounds.starts(n_restarts, random)
    if n_restarts > 0 and evidence.n_rows > _MANY_ROWS:
        rows = np.sort(random.choice(evidence.n_rows, _FEW_ROWS, replace=False))
        few = evidence.on_rows(rows)
        ends = [few.search(bounds, [start])[0] for start in starts]
        starts = [starts[0], min(ends, key=evidence.surprise)]
    return evidence.search(bounds, starts)
