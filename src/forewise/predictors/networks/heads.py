"""Heads: what a network's outputs mean, as scenarios and as a likelihood.

A head turns outputs (n_draws, n_contexts, width) into scenarios and scores outcomes, all in
standardised units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

Draws = tuple[Tensor, Tensor | None]  # values and weights
_LOG_2PI = math.log(2 * math.pi)
#: Smallest and largest standard deviation of the noise, in units of the outcome's own. Without
#: them the likelihood of noise-free outcomes has no bound, and combined learning of a decision that
#: depends on the shape of a distribution alone lets its scale drift.
NOISE_BOUNDS = (0.0067, 50.0)
#: Largest loading of a factor; keeps the covariance of the noises well-conditioned.
_MAX_LOADING = 20.0


@dataclass(frozen=True)
class Head(ABC):
    """Meaning of the outputs; `n_outcomes` is the number of quantities predicted."""

    n_outcomes: int
    #: Why there is no likelihood of censored outcomes, and what to do; None where there is one.
    censored_unsupported_reason: ClassVar[str | None] = None

    @property
    def width(self) -> int:
        """Number of outputs the head needs."""
        return self.n_outcomes

    @property
    def n_noises(self) -> int:
        """Independent standard normals that a scenario is made from."""
        return self.n_outcomes

    @abstractmethod
    def scenarios(self, outputs: Tensor, noise: Tensor) -> Draws:
        """Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios) or None.

        `noise` is standard normal, (n_scenarios, n_contexts or 1, n_noises).
        """

    def equal_scenarios(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Values of equally weighted scenarios, for deciding."""
        return self.scenarios(outputs, noise)[0]

    @abstractmethod
    def negative_log_likelihood(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean over draws, contexts and outcomes; y (n_contexts, n_outcomes)."""

    def censored_loss(self, outputs: Tensor, y: Tensor, censored: Tensor) -> Tensor:
        """The same, where some outcomes (n_contexts, n_outcomes) are lower bounds.

        Their density is replaced by the probability of more.
        """
        raise NotImplementedError

    @abstractmethod
    def moments(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of each draw's distribution, (n_draws, n_contexts, n_outcomes)."""


class PointHead(Head):
    """One value per outcome and no noise; scored by its squared error."""

    censored_unsupported_reason = (
        "a point has no distribution, and so no probability to lie beyond a bound. Use "
        "GaussianPredictor, or fit to forewise.predictors.completed(X, y, censored)"
    )

    def scenarios(self, outputs: Tensor, noise: Tensor) -> Draws:
        """The value of each draw of the weights, once: fewer scenarios than noises."""
        return outputs[: len(noise)].transpose(0, 1), None

    def negative_log_likelihood(self, outputs: Tensor, y: Tensor) -> Tensor:
        """That of a unit variance: half the squared error, up to a constant."""
        return 0.5 * ((outputs - y).square().mean() + _LOG_2PI)

    def moments(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        return outputs, torch.zeros_like(outputs)


@dataclass(frozen=True)
class GaussianHead(Head):
    """A mean and a log-variance per outcome."""

    noise_bounds: tuple[float, float] = NOISE_BOUNDS

    @property
    def width(self) -> int:
        return 2 * self.n_outcomes

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = outputs.split(self.n_outcomes, dim=-1)
        return mean, _bounded(raw, self.noise_bounds)

    def scenarios(self, outputs: Tensor, noise: Tensor) -> Draws:
        """mean + noise · exp(log-variance / 2), both from the same draw of the weights."""
        mean, log_variance = self._split(_repeated(outputs, len(noise)))
        return torch.addcmul(mean, noise, (0.5 * log_variance).exp()).transpose(0, 1), None

    def negative_log_likelihood(self, outputs: Tensor, y: Tensor) -> Tensor:
        """½ [(y − mean)² exp(−log-variance) + log-variance + log 2π]."""
        mean, log_variance = self._split(outputs)
        squared = (y - mean).square() * (-log_variance).exp()
        return 0.5 * (squared.mean() + log_variance.mean() + _LOG_2PI)

    def censored_loss(self, outputs: Tensor, y: Tensor, censored: Tensor) -> Tensor:
        mean, log_variance = self._split(outputs)
        return -log_density_or_tail(y, mean, 0.5 * log_variance, censored).mean()

    def moments(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self._split(outputs)
        return mean, log_variance.exp()


@dataclass(frozen=True)
class FactorHead(GaussianHead):
    """A Gaussian whose noises are correlated through a few factors that all outcomes share.

        y_i = mean_i + std_i · (ε_i + Σ_k l_ik f_k) / √(1 + Σ_k l_ik²),    ε, f ~ N(0, 1)

    The division keeps std_i the standard deviation of outcome i's whole noise, so that bounds and
    moments mean the same with and without factors.
    """

    n_factors: int = 1
    censored_unsupported_reason = (
        "with factors outcomes depend on each other, and the probability that several lie beyond "
        "their bounds has no closed form. Use n_factors=0, or fit to "
        "forewise.predictors.completed(X, y, censored)"
    )

    @property
    def width(self) -> int:
        return (2 + self.n_factors) * self.n_outcomes

    @property
    def n_noises(self) -> int:
        return self.n_factors + self.n_outcomes

    def _joint(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, standard deviation of ε alone, and loadings (..., outcome, factor)."""
        count = self.n_outcomes
        gaussian, raw = outputs.split([2 * count, self.n_factors * count], dim=-1)
        mean, log_variance = self._split(gaussian)
        free = raw.unflatten(-1, (count, self.n_factors)) + self._first_loadings().to(outputs)
        loadings = _MAX_LOADING * torch.tanh(free / _MAX_LOADING)
        whole = 1 + loadings.square().sum(-1)
        return mean, (0.5 * log_variance).exp() * whole.rsqrt(), loadings

    def _first_loadings(self) -> Tensor:
        """Where training starts: cosines of rising frequency; 0 would be a saddle point."""
        place = (torch.arange(self.n_outcomes) + 0.5) / self.n_outcomes
        return 0.5 * torch.cos(math.pi * place[:, None] * torch.arange(self.n_factors))

    def scenarios(self, outputs: Tensor, noise: Tensor) -> Draws:
        """The factors are the first columns of the noise, the best spread of a Sobol sequence."""
        mean, std, loadings = self._joint(_repeated(outputs, len(noise)))
        factors, own = noise.split([self.n_factors, self.n_outcomes], dim=-1)
        together = own + (loadings * factors[..., None, :]).sum(-1)
        return torch.addcmul(mean, together, std).transpose(0, 1), None

    def negative_log_likelihood(self, outputs: Tensor, y: Tensor) -> Tensor:
        """That of N(mean, S (I + L Lᵀ) S), S = diag(std), per outcome, by Woodbury's identity."""
        mean, std, loadings = self._joint(outputs)
        own = (y - mean) / std
        across = loadings.transpose(-1, -2)
        inner = across @ loadings + torch.eye(self.n_factors).to(outputs)
        root = torch.linalg.cholesky(inner)
        explained = torch.linalg.solve_triangular(root, across @ own[..., None], upper=False)
        squared = own.square().sum(-1) - explained.square().sum((-1, -2))
        log_volume = std.log().sum(-1) + root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (0.5 * squared + log_volume).mean() / self.n_outcomes + 0.5 * _LOG_2PI

    def moments(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        return super().moments(outputs[..., : 2 * self.n_outcomes])


def gaussian_head(
    n_outcomes: int, n_factors: int, noise_bounds: tuple[float, float] = NOISE_BOUNDS
) -> GaussianHead:
    """A head with factors, where there are factors and several outcomes to share them."""
    if n_factors == 0 or n_outcomes == 1:
        return GaussianHead(n_outcomes, noise_bounds)
    return FactorHead(n_outcomes, noise_bounds, n_factors)


@dataclass(frozen=True)
class MixtureHead(Head):
    """A mixture of Gaussians, its components shared by all outcomes.

    In training, scenarios take the components in turn and carry the components' probabilities as
    weights, so that gradients reach the probabilities too. For deciding they are drawn from the
    components by probability and weighted equally, which makes programs easier to solve.
    """

    n_components: int

    @property
    def width(self) -> int:
        return self.n_components * (2 * self.n_outcomes + 1)

    @property
    def n_noises(self) -> int:
        return self.n_outcomes + 1  # the last one picks the component

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Means and log-variances (..., component, outcome), log-probabilities (..., component)."""
        count = self.n_components * self.n_outcomes
        mean, raw, logits = outputs.split([count, count, self.n_components], dim=-1)
        shape = (*outputs.shape[:-1], self.n_components, self.n_outcomes)
        # Components that start alike stay alike: they start side by side.
        offsets = torch.linspace(-1, 1, self.n_components).to(outputs)[:, None]
        log_variance = _bounded(raw.reshape(shape), NOISE_BOUNDS)
        return mean.reshape(shape) + offsets, log_variance, logits.log_softmax(-1)

    def scenarios(self, outputs: Tensor, noise: Tensor) -> Draws:
        """The components in turn, each weighted with its probability."""
        mean, log_variance, log_probability = self._split(_repeated(outputs, len(noise)))
        turn = torch.arange(len(noise), device=outputs.device)
        component = turn % self.n_components
        chosen = log_variance[turn, :, component]
        values = mean[turn, :, component] + noise[..., :-1] * (0.5 * chosen).exp()
        # `Scenarios` scales the weights, which matters where not all components are visited.
        return values.transpose(0, 1), log_probability[turn, :, component].exp().transpose(0, 1)

    def equal_scenarios(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """A component of each draw, picked by the last noise, with its probability."""
        mean, log_variance, log_probability = self._split(_repeated(outputs, len(noise)))
        below = torch.special.ndtr(noise[..., -1:]) > log_probability.exp().cumsum(-1)
        component = below.sum(-1).clamp_max(self.n_components - 1)[..., None, None]
        component = component.expand(*component.shape[:2], 1, self.n_outcomes)
        mean, log_variance = (block.gather(2, component)[:, :, 0] for block in (mean, log_variance))
        return torch.addcmul(mean, noise[..., :-1], (0.5 * log_variance).exp()).transpose(0, 1)

    def negative_log_likelihood(self, outputs: Tensor, y: Tensor) -> Tensor:
        """−log Σ_k π_k Π_i N(y_i; mean_ki, variance_ki), per outcome."""
        mean, log_variance, log_probability = self._split(outputs)
        squared = (y[:, None] - mean).square() * (-log_variance).exp()
        densities = -0.5 * (squared + log_variance + _LOG_2PI).sum(-1)
        joint = torch.logsumexp(densities + log_probability, dim=-1)
        return -joint.mean() / self.n_outcomes

    def censored_loss(self, outputs: Tensor, y: Tensor, censored: Tensor) -> Tensor:
        mean, log_variance, log_probability = self._split(outputs)
        parts = log_density_or_tail(y[:, None], mean, 0.5 * log_variance, censored[:, None])
        joint = torch.logsumexp(parts.sum(-1) + log_probability, dim=-1)
        return -joint.mean() / self.n_outcomes

    def moments(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance, log_probability = self._split(outputs)
        probability = log_probability.exp()[..., None]
        centre = (probability * mean).sum(-2)
        second = (probability * (log_variance.exp() + mean.square())).sum(-2)
        return centre, second - centre.square()


def log_density_or_tail(y: Tensor, mean: Tensor, log_std: Tensor, censored: Tensor) -> Tensor:
    """log N(y; mean, std²), and log Φ((mean − y) / std) where only a lower bound is known.

    Accurate far in the tail, and so is its gradient.
    """
    scaled = (y - mean) * (-log_std).exp()
    density = -0.5 * (scaled.square() + _LOG_2PI) - log_std
    # Each branch sees zeros in the place of the other's rows, whose gradients would be 0 · inf.
    tail = torch.special.log_ndtr(torch.where(censored, -scaled, 0.0))
    return torch.where(censored, tail, density)


def _bounded(raw: Tensor, stds: tuple[float, float]) -> Tensor:
    """Log-variance, softly clipped to the bounds."""
    low, high = (2 * math.log(std) for std in stds)
    return high - softplus(high - (softplus(raw - low) + low))


def _repeated(outputs: Tensor, count: int) -> Tensor:
    """Outputs of `count` scenarios: each draw of the weights for a run of consecutive ones."""
    if len(outputs) == count:
        return outputs
    # Not in turn: every fourth point of a Sobol sequence may lie in the same quarter.
    return outputs[torch.arange(count, device=outputs.device) * len(outputs) // count]
