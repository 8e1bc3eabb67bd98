"""A smooth curve of which the data leave some parts open, and noise around it.

May import: exceptions, arguments, scenarios, tables, and its siblings `base`, `blocks`,
`marginal_likelihood`, `noise`, `parameter_checks`, `standardise`.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.marginal_likelihood import (
    Bounds,
    Evidence,
    SquaredExponential,
    best_kernel,
)
from forewise.predictors.networks.blocks import blocks
from forewise.predictors.networks.noise import normal_draws
from forewise.predictors.networks.standardise import mean_and_std, standardise
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_random_state
from forewise.validation.parameters import require_bounds, require_count, require_positive
from forewise.validation.tables import check_training_data


class GaussianProcessPredictor(Predictor):
    """A Gaussian process for each outcome: normal scenarios, wider where data are scarce.

    Prefer it with little data (up to 2,000 rows), smooth dependence on the context and noise that
    is the same everywhere; it says apart what more data could tell (`epistemic_aleatoric`) and
    what they could not. In standardised units

        y = f(x) + noise,   f ~ GP(0, exp(-|x - x'|² / 2ℓ²)),   noise ~ N(0, s²)

        scenario j of x:   mean_f(x) + √(var_f(x) + s²) ε_j,     ε_j ~ N(0, 1)

    with ℓ and s² of the highest marginal likelihood. Outcomes are
    independent of each other given the context. Contexts and outcomes are standardised inside;
    a column that never changes does not count. Time grows with the cube of the rows, memory and
    what is stored with their square, once for each outcome.

    Parameters
    ----------
    n_restarts : int
        Further searches for ℓ and s², from random starts. With more than 1,000 rows they are made
        on 400 of them, and the best of their ends is taken further on all.
    noise_bounds : pair of float
        Lowest and highest s², in standardised units. A search that ends at a bound is no error
        and gives no warning: noise-free data end at the lowest.
    length_scale_bounds : pair of float
        Lowest and highest ℓ, in standard deviations of a context column.
    alpha : float
        Added to the diagonal of the training covariance, in standardised units. Like
        scikit-learn's, it smooths the curve but is not part of the scenarios' variance; the
        lowest noise keeps the covariance well-conditioned without it.
    max_rows : int or None
        With more training rows than this, that many are drawn at random and fitted on. None
        takes all.
    random_state : int, RandomState or None
        Of the restarts and of the rows drawn.

    Attributes
    ----------
    length_scale_, noise_ : arrays (n_outcomes,)
        ℓ and s², in standardised units.
    contexts_ : array (n_rows, n_features)
        Standardised contexts that were fitted on.
    coefficients_ : array (n_outcomes, n_rows)
        Their covariance's inverse, times the standardised outcomes.
    cholesky_ : array (n_outcomes, n_rows, n_rows)
        Lower Cholesky factor of their covariance.
    context_mean_, context_std_ : arrays (n_features,)
    outcome_mean_, outcome_std_ : arrays (n_outcomes,)

    Examples
    --------
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> predictor = GaussianProcessPredictor().fit(X, np.sin(X))
    >>> predictor.sample([[1.5]]).values.mean().round(decimals=1)
    tensor(1., dtype=torch.float64)
    """

    length_scale_: np.ndarray
    noise_: np.ndarray
    contexts_: np.ndarray
    coefficients_: np.ndarray
    cholesky_: np.ndarray
    context_mean_: np.ndarray
    context_std_: np.ndarray
    outcome_mean_: np.ndarray
    outcome_std_: np.ndarray

    def __init__(
        self,
        n_restarts: int = 0,
        noise_bounds: tuple[float, float] = (0.01, 100.0),
        length_scale_bounds: tuple[float, float] = (1e-2, 1e4),
        alpha: float = 1e-10,
        max_rows: int | None = 2000,
        random_state: Any = 0,
    ) -> None:
        self.n_restarts = n_restarts
        self.noise_bounds = noise_bounds
        self.length_scale_bounds = length_scale_bounds
        self.alpha = alpha
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find length scale and noise of each outcome, and condition on the data.

        Warns (`ConvergenceWarning`) if a search stopped before it converged.
        """
        X, y = check_training_data(self, X, y)
        self._check_settings()
        random = as_random_state(self.random_state)
        if self.max_rows is not None and len(X) > self.max_rows:
            rows = np.sort(random.choice(len(X), self.max_rows, replace=False))
            X, y = X[rows], y[rows]
        self.context_mean_, self.context_std_ = mean_and_std(X)
        self.outcome_mean_, self.outcome_std_ = mean_and_std(y)
        self.contexts_ = standardise(X, self.context_mean_, self.context_std_)
        targets = standardise(y, self.outcome_mean_, self.outcome_std_)
        squared = cdist(self.contexts_, self.contexts_, "sqeuclidean")
        evidences = [Evidence(squared, target, self.alpha) for target in targets.T]
        kernels = self._best_kernels(evidences, random)
        factors = [self._factor(*pair) for pair in zip(evidences, kernels, strict=True)]
        self.length_scale_ = np.array([kernel.length_scale for kernel in kernels])
        self.noise_ = np.array([kernel.noise for kernel in kernels])
        self.cholesky_ = np.stack([factor for factor, _ in factors])
        self.coefficients_ = np.stack([weights for _, weights in factors])
        return self

    def epistemic_aleatoric(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Variance of the curve and variance of the noise, in squared units of the outcome.

        The first is what more data of this kind would reduce, the second what they would not.

        Parameters
        ----------
        X : table (n_contexts, n_features)

        Returns
        -------
        epistemic, aleatoric : arrays (n_contexts, n_outcomes)
        """
        variance = self._mean_and_variance(self.check_contexts(X))[1]
        return variance, np.broadcast_to(self._noise_variance(), variance.shape).copy()

    def _check_settings(self) -> None:
        require_count("n_restarts", self.n_restarts, at_least=0)
        require_bounds("noise_bounds", self.noise_bounds)
        require_bounds("length_scale_bounds", self.length_scale_bounds)
        require_positive("alpha", self.alpha)
        if self.max_rows is not None:
            require_count("max_rows", self.max_rows, at_least=1)

    def _best_kernels(
        self, evidences: list[Evidence], random: np.random.RandomState
    ) -> list[SquaredExponential]:
        bounds = Bounds(self.length_scale_bounds, self.noise_bounds)
        found = [best_kernel(evidence, bounds, self.n_restarts, random) for evidence in evidences]
        failed = sum(not converged for _, converged in found)
        if failed:
            warnings.warn(
                f"{failed} search(es) for length scale and noise stopped before they converged, "
                "and the best values found are used: try other bounds or more n_restarts",
                ConvergenceWarning,
                stacklevel=3,
            )
        return [kernel for kernel, _ in found]

    def _factor(
        self, evidence: Evidence, kernel: SquaredExponential
    ) -> tuple[np.ndarray, np.ndarray]:
        try:
            return evidence.factor(kernel)
        except np.linalg.LinAlgError as error:
            raise InvalidInputError(
                f"the covariance of the training rows cannot be factorised with alpha="
                f"{self.alpha!r} and noise_bounds={self.noise_bounds!r}: raise either"
            ) from error

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
        for part, block in blocks(contexts):
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
