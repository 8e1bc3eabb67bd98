"""Ensembles: a few networks of one kind from different starts, trained side by side.

May import: exceptions, arguments, its siblings below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import check_n_scenarios
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.encodings import Encoding
from forewise.predictors.networks.heads import Head
from forewise.predictors.networks.off_support import OffSupportFallback
from forewise.predictors.networks.point import GaussianPredictor
from forewise.predictors.networks.training import Training
from forewise.predictors.networks.weights import EnsembleWeights, Layout, Weights
from forewise.validation.arguments import came_as
from forewise.validation.parameters import require_count


class EnsemblePredictor(NetworkPredictor):
    """Several networks of one kind whose disagreement is the doubt about the model.

    Of plain members it is a deep ensemble: prefer it where a Bayesian network's posterior is not
    trusted. Of Bayesian members it is a posterior with several modes, each with its own spread:
    prefer it where the last percent is worth several times the training. Members share the batches
    and pass through the layers in one batched product; each member has as many scenarios.

    Parameters
    ----------
    member : NetworkPredictor, optional
        The kind of network, with its hidden sizes and its training; `GaussianPredictor()` by
        default. Its own random state does not matter.
    n_members : int
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        member: NetworkPredictor | None = None,
        n_members: int = 5,
        random_state: Any = None,
    ) -> None:
        self.member = member
        self.n_members = n_members
        self.random_state = random_state

    @property
    def _member(self) -> NetworkPredictor:
        return GaussianPredictor() if self.member is None else self.member

    @property
    def hidden_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        """The members'."""
        return self._member.hidden_sizes

    @property
    def extrapolate(self) -> bool:  # type: ignore[override]
        """The members'."""
        return self._member.extrapolate

    @property
    def encoding(self) -> Encoding | None:  # type: ignore[override]
        """The members'."""
        return self._member.encoding

    @property
    def off_support(self) -> OffSupportFallback | None:  # type: ignore[override]
        """The members'."""
        return self._member.off_support

    @property
    def training(self) -> Training | None:  # type: ignore[override]
        """The members'."""
        return self._member.training

    @property
    def divergence_share(self) -> float:
        """The members'."""
        return self._member.divergence_share

    @property
    def n_training_draws(self) -> int:
        """As many for each member as it would have alone."""
        return self.n_members * self._member.n_training_draws

    def _head(self, n_outcomes: int) -> Head:
        return self._member._head(n_outcomes)

    def _weights(self, layout: Layout, generator: torch.Generator) -> Weights:
        members = (self._member._weights(layout, generator) for _ in range(self.n_members))
        return EnsembleWeights(members)

    def epistemic_aleatoric(self, X: Any, n_draws: int = 256) -> tuple[np.ndarray, np.ndarray]:
        """The two parts of the predictive variance: doubt about the model, and noise.

        Parameters
        ----------
        X : table (n_contexts, n_features)
        n_draws : int
            Draws of the weights of all Bayesian members together; plain ones have one each.

        Returns
        -------
        epistemic, aleatoric : arrays (n_contexts, n_outcomes)
        """
        check_n_scenarios(n_draws)
        means, variances = self._moments(X, n_draws)
        return means.var(0), variances.mean(0)

    def _check_parameters(self) -> None:
        if not isinstance(self._member, NetworkPredictor) or isinstance(
            self._member, EnsemblePredictor
        ):
            raise InvalidInputError(
                "member must be one network, such as GaussianPredictor() or BayesianPredictor(), "
                f"but is {came_as(self._member)}"
            )
        require_count("n_members", self.n_members, at_least=1)
        self._member._check_parameters()
