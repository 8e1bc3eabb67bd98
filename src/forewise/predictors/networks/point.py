"""Plain networks: a point forecast (the paper's ANN), or a Gaussian with a variance of its own.

May import: its siblings below.
"""

from __future__ import annotations

from typing import Any

import torch

from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.encodings import Encoding
from forewise.predictors.networks.heads import Head, PointHead, gaussian_head
from forewise.predictors.networks.off_support import OffSupportFallback
from forewise.predictors.networks.training import Training
from forewise.predictors.networks.weights import FixedWeights, Layout, Weights
from forewise.validation.parameters import require_count


class PointPredictor(NetworkPredictor):
    """A network that predicts one value per outcome: a single scenario, no uncertainty.

    Prefer it only where uncertainty cannot matter (`certainty_equivalent` says when), as the
    baseline that predicts first and optimises then, or in a combined learner, where its forecast
    becomes whatever makes the decision good. The paper's ANN.

    Parameters
    ----------
    hidden_sizes : tuple of int
        Widths of the hidden ReLU layers.
    extrapolate, encoding : bool, Encoding
        As in `BayesianPredictor`.
    training : Training, optional
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        hidden_sizes: tuple[int, ...] = (128, 64, 64),
        extrapolate: bool = True,
        encoding: Encoding | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.extrapolate = extrapolate
        self.encoding = encoding
        self.training = training
        self.random_state = random_state

    def _head(self, n_outcomes: int) -> Head:
        return PointHead(n_outcomes)

    def _weights(self, layout: Layout, generator: torch.Generator) -> Weights:
        return FixedWeights(layout, generator)


class GaussianPredictor(NetworkPredictor):
    """A plain network with a mean and a variance per outcome: noise, but no doubt about itself.

    Prefer it where data are plenty and noise changes with the context.

    Parameters
    ----------
    hidden_sizes : tuple of int
        Widths of the hidden ReLU layers.
    n_factors, extrapolate, encoding, off_support
        As in `BayesianPredictor`.
    training : Training, optional
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        hidden_sizes: tuple[int, ...] = (128, 64, 64),
        n_factors: int = 0,
        extrapolate: bool = True,
        encoding: Encoding | None = None,
        off_support: OffSupportFallback | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_factors = n_factors
        self.extrapolate = extrapolate
        self.encoding = encoding
        self.off_support = off_support
        self.training = training
        self.random_state = random_state

    def _head(self, n_outcomes: int) -> Head:
        return gaussian_head(n_outcomes, self.n_factors)

    def _weights(self, layout: Layout, generator: torch.Generator) -> Weights:
        return FixedWeights(layout, generator)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_factors", self.n_factors, at_least=0)
