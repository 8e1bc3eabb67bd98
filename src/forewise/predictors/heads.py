"""Heads: what a network's outputs mean, as scenarios and as a likelihood.

A head turns outputs (n_draws, n_contexts, width) into scenarios and scores outcomes, all in
standardised units. May import: nothing of forewise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch.nn.functional import softplus

_LOG_2PI = math.log(2 * math.pi)
#: Smallest and largest standard deviation of the noise, in units of the outcome's own. Where the
#: outcome has no noise at all the likelihood would have no end; and where a decision depends on
#: the shape of a distribution alone, learning from its cost would let the size drift away.
NOISE_BOUNDS = (0.0067, 50.0)


@dataclass(frozen=True)
class Head(ABC):
    """Meaning of the outputs; `n_outcomes` is the number of quantities predicted."""

    n_outcomes: int

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of outputs the head needs."""

    @abstractmethod
    def scenarios(
        self, outputs: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios) or None.

        `noise` (n_scenarios, n_contexts or 1, n_outcomes) is standard normal; scenario j comes
        from draw j of the weights, modulo their number.
        """

    @abstractmethod
    def negative_log_likelihood(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Mean over draws, contexts and outcomes; y (n_contexts, n_outcomes)."""

    @abstractmethod
    def moments(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of each draw's distribution, (n_draws, n_contexts, n_outcomes)."""


class PointHead(Head):
    """One value per outcome and no noise; scored by its squared error."""

    @property
    def width(self) -> int:
        """One output per outcome."""
        return self.n_outcomes

    def scenarios(
        self, outputs: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The value of each draw of the weights, once."""
        return outputs[: len(noise)].transpose(0, 1), None

    def negative_log_likelihood(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """That of a unit variance: half the squared error, up to a constant."""
        return 0.5 * ((outputs - y).square().mean() + _LOG_2PI)

    def moments(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The value, and no variance."""
        return outputs, torch.zeros_like(outputs)


@dataclass(frozen=True)
class GaussianHead(Head):
    """A mean and a log-variance per outcome."""

    noise_bounds: tuple[float, float] = NOISE_BOUNDS

    @property
    def width(self) -> int:
        """Two outputs per outcome."""
        return 2 * self.n_outcomes

    def _split(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, raw = outputs.split(self.n_outcomes, dim=-1)
        return mean, _bounded(raw, self.noise_bounds)

    def scenarios(
        self, outputs: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """mean + noise · exp(log-variance / 2), both from the same draw of the weights."""
        mean, log_variance = self._split(_repeated(outputs, len(noise)))
        return torch.addcmul(mean, noise, (0.5 * log_variance).exp()).transpose(0, 1), None

    def negative_log_likelihood(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """½ [(y − mean)² exp(−log-variance) + log-variance + log 2π]."""
        mean, log_variance = self._split(outputs)
        squared = (y - mean).square() * (-log_variance).exp()
        return 0.5 * (squared.mean() + log_variance.mean() + _LOG_2PI)

    def moments(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance, as they stand."""
        mean, log_variance = self._split(outputs)
        return mean, log_variance.exp()


@dataclass(frozen=True)
class MixtureHead(Head):
    """A mixture of Gaussians, its components shared by all outcomes.

    Scenarios visit the components in turn and carry the components' probabilities as weights,
    so that gradients reach the probabilities too.
    """

    n_components: int

    @property
    def width(self) -> int:
        """A mean and a log-variance per component and outcome, a logit per component."""
        return self.n_components * (2 * self.n_outcomes + 1)

    def _split(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Means and log-variances (..., component, outcome), log-probabilities (..., component)."""
        count = self.n_components * self.n_outcomes
        mean, raw, logits = outputs.split([count, count, self.n_components], dim=-1)
        shape = (*outputs.shape[:-1], self.n_components, self.n_outcomes)
        # Components that start alike stay alike: they start side by side.
        offsets = torch.linspace(-1, 1, self.n_components).to(outputs)[:, None]
        return (
            mean.reshape(shape) + offsets,
            _bounded(raw.reshape(shape), NOISE_BOUNDS),
            logits.log_softmax(-1),
        )

    def scenarios(
        self, outputs: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Component j of draw j, each weighted with its probability."""
        count = len(noise)
        mean, log_variance, log_probability = self._split(_repeated(outputs, count))
        turn = torch.arange(count, device=outputs.device)
        # Draws of the weights come in turn as well; a shift after each round of them makes
        # every draw meet every component.
        component = (turn + turn // len(outputs)) % self.n_components
        chosen = log_variance[turn, :, component]
        values = mean[turn, :, component] + noise * (0.5 * chosen).exp()
        # Where a draw of few scenarios visits fewer than all components, weights still sum to
        # one after scaling, which `Scenarios` does.
        return values.transpose(0, 1), log_probability[turn, :, component].exp().transpose(0, 1)

    def negative_log_likelihood(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """−log Σ_k π_k Π_i N(y_i; mean_ki, variance_ki), per outcome."""
        mean, log_variance, log_probability = self._split(outputs)
        squared = (y[:, None] - mean).square() * (-log_variance).exp()
        densities = -0.5 * (squared + log_variance + _LOG_2PI).sum(-1)
        joint = torch.logsumexp(densities + log_probability, dim=-1)
        return -joint.mean() / self.n_outcomes

    def moments(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Those of the mixture."""
        mean, log_variance, log_probability = self._split(outputs)
        probability = log_probability.exp()[..., None]
        centre = (probability * mean).sum(-2)
        second = (probability * (log_variance.exp() + mean.square())).sum(-2)
        return centre, second - centre.square()


def _bounded(raw: torch.Tensor, stds: tuple[float, float]) -> torch.Tensor:
    """Log-variance between bounds, and what it was where it is far from them."""
    low, high = (2 * math.log(std) for std in stds)
    return high - softplus(high - (softplus(raw - low) + low))


def _repeated(outputs: torch.Tensor, count: int) -> torch.Tensor:
    """Outputs of `count` scenarios: draws of the weights in turn."""
    if len(outputs) == count:
        return outputs
    return outputs[torch.arange(count, device=outputs.device) % len(outputs)]
