"""Bayesian networks: every weight is a Gaussian, every scenario a draw of all weights.

May import: exceptions, its siblings below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import check_n_scenarios
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.encodings import Encoding
from forewise.predictors.networks.heads import NOISE_BOUNDS, Head, MixtureHead, gaussian_head
from forewise.predictors.networks.off_support import OffSupportFallback
from forewise.predictors.networks.training import Training
from forewise.predictors.networks.weights import GaussianWeights, Layout, Weights
from forewise.validation.parameters import require_count, require_positive


class _BayesianNetworkPredictor(NetworkPredictor):
    """Mean-field variational inference, whatever the head."""

    n_scenarios: int
    kl_weight: float
    prior_std: float
    initial_std: float

    @property
    def divergence_share(self) -> float:
        """`kl_weight`: 1 is the evidence lower bound, less tempers the posterior."""
        return self.kl_weight

    @property
    def n_training_draws(self) -> int:
        """`n_scenarios`."""
        return self.n_scenarios

    def epistemic_aleatoric(self, X: Any, n_draws: int = 256) -> tuple[np.ndarray, np.ndarray]:
        """The two parts of the predictive variance, by the law of total variance.

            Var[y | x] = Var_w[ E[y | x, w] ] + E_w[ Var[y | x, w] ]

        Parameters
        ----------
        X : table (n_contexts, n_features)
        n_draws : int
            Draws of the weights.

        Returns
        -------
        epistemic, aleatoric : arrays (n_contexts, n_outcomes)
            What more data would tell, and what they would not; in squared units of the outcome.
        """
        check_n_scenarios(n_draws)
        means, variances = self._moments(X, n_draws)
        return means.var(0), variances.mean(0)

    def _weights(self, layout: Layout, generator: torch.Generator) -> Weights:
        return GaussianWeights(layout, self.prior_std, self.initial_std, generator)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_scenarios(self.n_scenarios)
        if not (self.kl_weight >= 0 and math.isfinite(self.kl_weight)):
            raise InvalidInputError(f"kl_weight must be at least 0, but is {self.kl_weight!r}")
        require_positive("prior_std", self.prior_std)
        require_positive("initial_std", self.initial_std)


class BayesianPredictor(_BayesianNetworkPredictor):
    """A Bayesian network with a mean and a log-variance head.

        y_j = mean_w(x) + ε_j · exp(½ logvar_w(x)),    w = w_j ~ Q,  ε_j ~ N(0, 1)

    Mean and variance of a scenario come from the same draw of the weights, so that scenarios
    carry what the network does not know (epistemic) and what nobody can know (aleatoric).
    Prefer it where data are few somewhere, and in combined learning.

    Parameters
    ----------
    hidden_sizes : tuple of int
        Widths of the hidden ReLU layers.
    n_scenarios : int
        Draws of the weights in a step of training.
    kl_weight : float
        What the divergence from the prior counts; 1 is the evidence lower bound, less tempers
        the posterior towards the data.
    prior_std : float
        Standard deviation of every weight's prior, N(0, prior_std²).
    initial_std : float
        Standard deviation of every weight when training starts. Small ones let the means find
        their place first; the paper's is 0.011.
    noise_bounds : tuple of two floats
        Smallest and largest standard deviation of the noise, in units of the outcome's own.
    n_factors : int
        Shocks that all outcomes share, such as a market or the weather: noises then move
        together, as much as the data say. 0 leaves them independent, given the context and the
        weights. Prefer a few where a decision adds few outcomes up; with dozens of them the
        likelihood cares for what they do not share, and learns their common level slowly.
    extrapolate : bool
        Whether contexts beyond those of training are taken as they are. False holds each input
        at the edge of what was seen: prefer it where inputs drift, as prices do over years.
    encoding : Encoding, optional
        What the network sees of each column beside the column itself, such as `FourierFeatures()`
        for outcomes that go up and down several times over the range of a column.
    off_support : OffSupportFallback, optional
        Past outcomes in the place of scenarios, for contexts unlike those of training.
    training : Training, optional
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        hidden_sizes: tuple[int, ...] = (128, 64, 64),
        n_scenarios: int = 16,
        kl_weight: float = 0.01,
        prior_std: float = 1.0,
        initial_std: float = 1e-3,
        noise_bounds: tuple[float, float] = NOISE_BOUNDS,
        n_factors: int = 0,
        extrapolate: bool = True,
        encoding: Encoding | None = None,
        off_support: OffSupportFallback | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_scenarios = n_scenarios
        self.kl_weight = kl_weight
        self.prior_std = prior_std
        self.initial_std = initial_std
        self.noise_bounds = noise_bounds
        self.n_factors = n_factors
        self.extrapolate = extrapolate
        self.encoding = encoding
        self.off_support = off_support
        self.training = training
        self.random_state = random_state

    def _head(self, n_outcomes: int) -> Head:
        return gaussian_head(n_outcomes, self.n_factors, self.noise_bounds)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_factors", self.n_factors, at_least=0)
        bounds = self.noise_bounds
        if len(bounds) != 2 or not 0 < bounds[0] < bounds[1] < math.inf:
            raise InvalidInputError(
                "noise_bounds must be two positive numbers, the smaller one first, but is "
                f"{bounds!r}"
            )


class MixturePredictor(_BayesianNetworkPredictor):
    """A Bayesian network with a mixture of Gaussians as its head.

        y ~ Σ_k π_k(x, w) N(mean_k(x, w), variance_k(x, w)),    w ~ Q

    Prefer it where the outcome has several modes, or is skewed: demand often is. Components are
    shared by all outcomes, so that outcomes can depend on each other through them. Scenarios
    come from a component as often as it is probable. In combined training they visit the components
    in turn and carry their probabilities as weights: there should be at least as many of them as
    there are components.

    Parameters
    ----------
    n_components : int
    hidden_sizes : tuple of int
        Widths of the hidden ReLU layers.
    n_scenarios : int
        Draws of the weights in a step of training.
    kl_weight, prior_std, initial_std, extrapolate, encoding, off_support
        As in `BayesianPredictor`.
    training : Training, optional
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        n_components: int = 4,
        hidden_sizes: tuple[int, ...] = (128, 64, 64),
        n_scenarios: int = 16,
        kl_weight: float = 0.01,
        prior_std: float = 1.0,
        initial_std: float = 1e-3,
        extrapolate: bool = True,
        encoding: Encoding | None = None,
        off_support: OffSupportFallback | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.hidden_sizes = hidden_sizes
        self.n_scenarios = n_scenarios
        self.kl_weight = kl_weight
        self.prior_std = prior_std
        self.initial_std = initial_std
        self.extrapolate = extrapolate
        self.encoding = encoding
        self.off_support = off_support
        self.training = training
        self.random_state = random_state

    def _head(self, n_outcomes: int) -> Head:
        return MixtureHead(n_outcomes, self.n_components)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.n_components, int | np.integer) or self.n_components < 1:
            raise InvalidInputError(
                f"n_components must be a whole number of at least 1, but is {self.n_components!r}"
            )
