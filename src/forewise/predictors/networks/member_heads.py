"""Heads of networks with members: what a member's outputs mean, in standardised units.

Outputs are (n_members, n_contexts, width); noise is standard normal, (n_scenarios, n_contexts or 1,
n_outcomes), and scenario j takes the outputs of member ``of[j]``. To add a head: a frozen dataclass
with the methods below, exported and known to storage.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from forewise.exceptions import InvalidInputError
from forewise.predictors.networks.heads import log_density_or_tail
from forewise.validation.parameters import require_level, require_positive

_LOG_2PI = math.log(2 * math.pi)
_N_SHOCKS = 32  # evenly spread noises that moments are taken over
_MAX_SCORE = 4.0


class MemberHead(ABC):
    """Meaning of a member's outputs.

    Examples
    --------
    >>> import forewise as fw
    >>> kinds = [fw.predictors.QuantileHead, fw.predictors.NormalHead]
    >>> all(issubclass(kind, fw.predictors.MemberHead) for kind in kinds)
    True
    """

    #: Whether there is a `censored_loss`; if not, members train on completed outcomes.
    takes_bounds: ClassVar[bool] = False

    @abstractmethod
    def width(self, n_outcomes: int) -> int:
        """Outputs that the head needs; called when the network is built."""

    @abstractmethod
    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean loss of each member (n_members,); y (n_members or 1, n_contexts, n_outcomes)."""

    def censored_loss(self, outputs: Tensor, y: Tensor, censored: Tensor) -> Tensor:
        """The same, where `censored` ones of y (n_members or 1, ...) are lower bounds.

        Their density is replaced by the probability of more.
        """
        raise NotImplementedError

    @abstractmethod
    def negative_log_likelihood(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean over contexts and outcomes, of each member, for variational inference."""

    @abstractmethod
    def values(self, outputs: Tensor, noise: Tensor, of: Tensor) -> Tensor:
        """Outcomes (n_scenarios, n_contexts, n_outcomes), differentiable in the outputs."""

    @abstractmethod
    def moments(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of each member's distribution, (n_members, n_contexts, n_outcomes)."""

    @abstractmethod
    def noise_std(self, outputs: Tensor) -> Tensor:
        """Spread of the noise, (n_members, n_contexts, n_outcomes)."""

    @abstractmethod
    def normal_scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The noise that gives y, (n_members, n_contexts, n_outcomes)."""


@dataclass(frozen=True)
class QuantileHead(MemberHead):
    """Quantiles at fixed levels, joined by lines in the normal score; scored by the pinball loss.

        y = q(ε),    q piecewise linear through (Φ⁻¹(level_j), q_j),    ε ~ N(0, 1)

    A Gaussian is the special case of one line, a point mass is a flat piece: it suits skewed
    outcomes and outcomes that are often zero. Beyond the last levels the last line goes on, so that
    scenarios of nonnegative outcomes can be negative.

    Parameters
    ----------
    levels : tuple of float
        Rising, between 0 and 1.

    Examples
    --------
    Finer at the top, for a newsvendor whose order is the 0.98 quantile:

    >>> import forewise as fw
    >>> levels = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
    >>> network = fw.BayesianPredictor(head=fw.predictors.QuantileHead(levels))
    """

    levels: tuple[float, ...] = (
        0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975,
    )  # fmt: skip

    def __post_init__(self) -> None:
        levels: Any = self.levels
        rising = isinstance(levels, tuple | list) and len(levels) > 1
        if not rising or any(low >= high for low, high in pairwise(levels)):
            raise InvalidInputError(f"levels must be at least two rising levels, but is {levels!r}")
        for level in levels:
            require_level("each of levels", level)
        object.__setattr__(self, "levels", tuple(levels))

    @cached_property
    def _z(self) -> Tensor:
        return torch.from_numpy(ndtri(np.array(self.levels))).float()

    @cached_property
    def _central(self) -> tuple[int, int]:
        """The two levels whose distance is the spread: those nearest to 20 % and 80 %."""
        below, above = (int(np.abs(np.array(self.levels) - level).argmin()) for level in (0.2, 0.8))
        return (below, above) if below < above else (0, len(self.levels) - 1)

    def width(self, n_outcomes: int) -> int:
        return len(self.levels) * n_outcomes

    def _quantiles(self, outputs: Tensor) -> Tensor:
        """(..., n_contexts, n_outcomes, levels), as the network gives them: they may cross."""
        return outputs.unflatten(-1, (-1, len(self.levels)))

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Pinball loss."""
        above = y[..., None] - self._quantiles(outputs)
        levels = torch.tensor(self.levels).to(above)
        return torch.maximum(levels * above, (levels - 1) * above).flatten(1).mean(1)

    def negative_log_likelihood(self, outputs: Tensor, y: Tensor) -> Tensor:
        """That of asymmetric Laplace noise at its best scale: the log of the pinball loss."""
        return (self.loss(outputs, y) + 1e-6).log()

    def values(self, outputs: Tensor, noise: Tensor, of: Tensor) -> Tensor:
        """The quantile function at the noise; crossing quantiles are sorted."""
        knots, z = self._quantiles(outputs).sort(-1).values, self._z.to(outputs.device)
        left = torch.searchsorted(z[1:-1], noise.contiguous())
        share = (noise - z[left]) / (z[left + 1] - z[left])
        member = of[:, None, None]
        context = torch.arange(knots.shape[1])[:, None]
        outcome = torch.arange(knots.shape[2])
        low = knots[member, context, outcome, left]
        return torch.addcmul(low, share, knots[member, context, outcome, left + 1] - low)

    def moments(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        n_members = len(outputs)
        levels = (np.arange(_N_SHOCKS) + 0.5) / _N_SHOCKS
        shocks = torch.from_numpy(ndtri(levels)).to(outputs)
        noise = shocks.repeat(n_members)[:, None, None]
        n_outcomes = outputs.shape[-1] // len(self.levels)
        of = torch.arange(n_members).repeat_interleave(_N_SHOCKS)
        values = self.values(outputs, noise.expand(-1, 1, n_outcomes), of)
        values = values.unflatten(0, (n_members, _N_SHOCKS))
        return values.mean(1), values.var(1, correction=0)

    def noise_std(self, outputs: Tensor) -> Tensor:
        """From the distance of two central quantiles; not positive where they cross."""
        quantiles, (below, above) = self._quantiles(outputs), self._central
        return (quantiles[..., above] - quantiles[..., below]) / (self._z[above] - self._z[below])

    def normal_scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Inverse of `values`, within ±4; the middle of a flat piece."""
        knots, z = self._quantiles(outputs).sort(-1).values, self._z.to(outputs.device)
        target = y.expand(knots.shape[:-1])[..., None].contiguous()
        found = []
        for right in (False, True):
            left = torch.searchsorted(knots[..., 1:-1].contiguous(), target, right=right)
            low, high = knots.gather(-1, left), knots.gather(-1, left + 1)
            share = (target - low) / (high - low).clamp_min(1e-9)
            found.append((z[left] + share * (z[left + 1] - z[left])).clamp(-_MAX_SCORE, _MAX_SCORE))
        return (0.5 * (found[0] + found[1]))[..., 0]


@dataclass(frozen=True)
class NormalHead(MemberHead):
    """A mean and a log-std per outcome; scored by the likelihood.

    Parameters
    ----------
    std : float, optional
        The noise's standard deviation, in units of the outcome's own, where it is known.

    Examples
    --------
    For outcomes that are known to be normal given the context, and for many that are sold out:

    >>> import forewise as fw
    >>> network = fw.BayesianPredictor(head=fw.predictors.NormalHead())
    """

    std: float | None = None
    takes_bounds = True

    def __post_init__(self) -> None:
        if self.std is not None:
            require_positive("std", self.std)

    def width(self, n_outcomes: int) -> int:
        return n_outcomes * (1 if self.std else 2)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        if self.std is not None:
            return outputs, torch.full_like(outputs, math.log(self.std))
        mean, log_std = outputs.chunk(2, -1)
        return mean, log_std.clamp(-5.0, 4.0)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return self.negative_log_likelihood(outputs, y)

    def negative_log_likelihood(self, outputs: Tensor, y: Tensor) -> Tensor:
        mean, log_std = self._split(outputs)
        rows = 0.5 * ((y - mean) * (-log_std).exp()).square() + log_std
        return rows.flatten(1).mean(1) + 0.5 * _LOG_2PI

    def censored_loss(self, outputs: Tensor, y: Tensor, censored: Tensor) -> Tensor:
        mean, log_std = self._split(outputs)
        return -log_density_or_tail(y, mean, log_std, censored).flatten(1).mean(1)

    def values(self, outputs: Tensor, noise: Tensor, of: Tensor) -> Tensor:
        mean, log_std = (part[of] for part in self._split(outputs))
        return torch.addcmul(mean, noise, log_std.exp())

    def moments(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self._split(outputs)
        return mean, (2 * log_std).exp()

    def noise_std(self, outputs: Tensor) -> Tensor:
        return self._split(outputs)[1].exp()

    def normal_scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        mean, log_std = self._split(outputs)
        return ((y - mean) * (-log_std).exp()).clamp(-_MAX_SCORE, _MAX_SCORE)
