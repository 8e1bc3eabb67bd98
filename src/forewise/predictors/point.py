"""Plain networks: a point forecast (the paper's ANN), or a Gaussian with a variance of its own.

May import: its siblings below.
"""

from __future__ import annotations

from typing import Any

import torch

from forewise.predictors.heads import PointHead, gaussian_head
from forewise.predictors.network import Network
from forewise.predictors.networked import NetworkPredictor
from forewise.predictors.parameter_checks import require_count
from forewise.predictors.training import Training
from forewise.predictors.weights import FixedWeights, Layout


class PointPredictor(NetworkPredictor):
    """A network that predicts one value per outcome: a single scenario, no uncertainty.

    Prefer it only where uncertainty cannot matter (`certainty_equivalent` says when), as the
    baseline that predicts first and optimises then, or in a combined learner, where its forecast
    becomes whatever makes the decision good. The paper's ANN.

    Parameters
    ----------
    hidden_sizes : tuple of int
        Widths of the hidden ReLU layers.
    extrapolate : bool
        As in `BayesianPredictor`.
    training : Training, optional
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        hidden_sizes: tuple[int, ...] = (128, 64, 64),
        extrapolate: bool = True,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.extrapolate = extrapolate
        self.training = training
        self.random_state = random_state

    def _build(self, n_features: int, n_outcomes: int, generator: torch.Generator) -> Network:
        head = PointHead(n_outcomes)
        layout = Layout((n_features, *self.hidden_sizes, head.width))
        return Network(layout, FixedWeights(layout, generator), head)


class GaussianPredictor(NetworkPredictor):
    """A plain network with a mean and a variance per outcome: noise, but no doubt about itself.

    Prefer it where data are plenty and noise changes with the context.

    Parameters
    ----------
    hidden_sizes : tuple of int
        Widths of the hidden ReLU layers.
    n_factors, extrapolate : int, bool
        As in `BayesianPredictor`.
    training : Training, optional
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        hidden_sizes: tuple[int, ...] = (128, 64, 64),
        n_factors: int = 0,
        extrapolate: bool = True,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_factors = n_factors
        self.extrapolate = extrapolate
        self.training = training
        self.random_state = random_state

    def _build(self, n_features: int, n_outcomes: int, generator: torch.Generator) -> Network:
        head = gaussian_head(n_outcomes, self.n_factors)
        layout = Layout((n_features, *self.hidden_sizes, head.width))
        return Network(layout, FixedWeights(layout, generator), head)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_factors", self.n_factors, at_least=0)
