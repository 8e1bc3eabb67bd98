"""Deep ensembles: a few plain networks from different starts, trained side by side.

May import: exceptions, its siblings below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.predictors.network import Network
from forewise.predictors.networked import NetworkPredictor
from forewise.predictors.point import GaussianPredictor, PointPredictor
from forewise.predictors.training import Training
from forewise.predictors.weights import EnsembleWeights


class EnsemblePredictor(NetworkPredictor):
    """Several networks of one kind whose disagreement is the doubt about the model.

    Prefer it where a Bayesian network's posterior is not trusted. Members share the batches and
    pass through the layers in one batched product; each member has as many scenarios.

    Parameters
    ----------
    member : GaussianPredictor or PointPredictor, optional
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
    def training(self) -> Training | None:  # type: ignore[override]
        """The members'."""
        return self._member.training

    def _build(self, n_features: int, n_outcomes: int, generator: torch.Generator) -> Network:
        one = self._member._build(n_features, n_outcomes, generator)
        weights = EnsembleWeights(one.layout, self.n_members, generator)
        return Network(one.layout, weights, one.head)

    def epistemic_aleatoric(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Variance of the members' means, and mean of their variances.

        Returns
        -------
        epistemic, aleatoric : arrays (n_contexts, n_outcomes)
        """
        means, variances = self._moments(X, self.n_members)
        return means.var(0), variances.mean(0)

    def _check_parameters(self) -> None:
        if not isinstance(self._member, GaussianPredictor | PointPredictor):
            raise InvalidInputError(
                "member must be a GaussianPredictor or a PointPredictor, but is a "
                f"{type(self._member).__name__}"
            )
        if not isinstance(self.n_members, int | np.integer) or self.n_members < 1:
            raise InvalidInputError(
                f"n_members must be a whole number of at least 1, but is {self.n_members!r}"
            )
        self._member._check_parameters()
