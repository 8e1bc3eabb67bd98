"""What training and deciding ask of a network, and the layered one of the plain predictors.

`Network` is the contract. A `LayeredNetwork` has layers, a distribution of weights, and a head. Its
weights are one vector, and a *draw* of them is a row of a matrix (n_draws, n_weights).
All draws pass through the layers in one batched product, and an optimiser sees one or two tensors
instead of dozens.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import pad, softplus

from forewise.predictors.networks.heads import Draws, Head
from forewise.predictors.sampling import stratified_normals

_VECTOR_WIDTH = 16  # numbers that the widest vector instructions take at a time
_MAX_ACTIVATIONS = 2**24  # in memory at a time, when scenarios are drawn without gradients


@dataclass(frozen=True)
class Layout:
    """Where in the vector each layer's weights are; a layer's last row is its bias."""

    sizes: tuple[int, ...]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(inputs + 1, outputs) of each layer."""
        return [(inputs + 1, outputs) for inputs, outputs in itertools.pairwise(self.sizes)]

    @property
    def n_weights(self) -> int:
        return sum(rows * columns for rows, columns in self.shapes)

    def initial(self, generator: Generator) -> Tensor:
        """Uniform, scaled to keep the signal's size through ReLUs; the last layer starts small."""
        parts = []
        for index, (rows, columns) in enumerate(self.shapes):
            last = index == len(self.shapes) - 1
            limit = math.sqrt(6 / rows) * (0.1 if last else 1.0)
            layer = limit * (2 * torch.rand(rows, columns, generator=generator) - 1)
            if last:
                layer[-1] = 0
            parts.append(layer.flatten())
        return torch.cat(parts)

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """Outputs (n_draws, n_contexts, outputs) of x (n_contexts, inputs), for each draw."""
        return _forward(self._layers(weights), x)

    def forward_reproducible(self, x: Tensor, weights: Tensor) -> Tensor:
        """The same, and to the bit the same wherever in x a context stands (see `fixed_blocks`).

        A product whose width is no multiple of the vector width may round the rows in its middle
        and at its end in different ways. Padded with zeros, it does not.
        """
        layers = self._layers(weights)
        for index, layer in enumerate(layers):
            width = layer.shape[-1]
            missing = -width % _VECTOR_WIDTH
            if not missing:
                continue
            layers[index] = pad(layer, (0, missing))
            if index + 1 < len(layers):
                rows, bias = layers[index + 1].split([width, 1], dim=1)
                layers[index + 1] = torch.cat([pad(rows, (0, 0, 0, missing)), bias], dim=1)
        return _forward(layers, x)[..., : self.sizes[-1]]

    def _layers(self, weights: Tensor) -> list[Tensor]:
        """Each layer's (n_draws, inputs + 1, outputs)."""
        parts = weights.split([rows * columns for rows, columns in self.shapes], dim=1)
        pairs = zip(parts, self.shapes, strict=True)
        return [part.view(len(weights), *shape) for part, shape in pairs]


def _forward(layers: list[Tensor], x: Tensor) -> Tensor:
    hidden = x.expand(len(layers[0]), *x.shape)
    for index, layer in enumerate(layers):
        if index:
            hidden = hidden.relu_()
        hidden = torch.baddbmm(layer[:, -1:], hidden, layer[:, :-1])
    return hidden


class Weights(nn.Module, ABC):
    """A distribution of weight vectors, as training sees it."""

    @abstractmethod
    def draw(self, n_draws: int, generator: Generator) -> Tensor:
        """At most `n_draws` weight vectors (draws, n_weights), with gradients."""

    def divergence(self) -> Tensor:
        """Kullback–Leibler divergence from the prior; 0 where there is none."""
        return torch.zeros(())


class FixedWeights(Weights):
    """One vector: a plain network."""

    def __init__(self, layout: Layout, generator: Generator) -> None:
        super().__init__()
        self.value = nn.Parameter(layout.initial(generator)[None])

    def draw(self, n_draws: int, generator: Generator) -> Tensor:
        return self.value


class GaussianWeights(Weights):
    """Independent Gaussians, N(mean, softplus(rho)²), with the prior N(0, prior_std²)."""

    def __init__(
        self, layout: Layout, prior_std: float, initial_std: float, generator: Generator
    ) -> None:
        super().__init__()
        self.prior_std = prior_std
        self.mean = nn.Parameter(layout.initial(generator))
        rho = math.log(math.expm1(initial_std))  # softplus(rho) is the standard deviation
        self.rho = nn.Parameter(torch.full((layout.n_weights,), rho))

    def draw(self, n_draws: int, generator: Generator) -> Tensor:
        """Independent draws, reparametrised."""
        noise = torch.randn(n_draws, len(self.mean), generator=generator).to(self.mean.device)
        return torch.addcmul(self.mean, softplus(self.rho), noise)

    def divergence(self) -> Tensor:
        """Σ log(s/σ) + (σ² + μ²) / 2s² − ½, in closed form."""
        std = softplus(self.rho)
        squares = (std.square() + self.mean.square()).sum() / (2 * self.prior_std**2)
        count = len(self.mean)
        return squares - std.log().sum() + count * (math.log(self.prior_std) - 0.5)


class EnsembleWeights(Weights):
    """Weights of several members, each from its own start and equally probable."""

    def __init__(self, members: Iterable[Weights]) -> None:
        super().__init__()
        self.members: Any = nn.ModuleList(members)

    def draw(self, n_draws: int, generator: Generator) -> Tensor:
        """Each member's share of the draws, one after the other; of a fixed member its one."""
        count = len(self.members)
        ends = [n_draws * place // count for place in range(count + 1)]
        shares = [end - start for start, end in itertools.pairwise(ends)]
        pairs = zip(self.members, shares, strict=True)
        return torch.cat([member.draw(share, generator) for member, share in pairs])

    def divergence(self) -> Tensor:
        """The members' mean: never less than that of their mixture."""
        return torch.stack([member.divergence() for member in self.members]).mean()


class Network(nn.Module, ABC):
    """Contexts to a distribution of outcomes, all in standardised units."""

    betas: tuple[float, float] = (0.9, 0.999)  # of Adam

    @property
    @abstractmethod
    def n_noises(self) -> int:
        """Independent standard normals that a scenario is made from."""

    @abstractmethod
    def draw(self, n_draws: int, generator: Generator) -> Any:
        """Draws of the weights, at most so many, for `common_scenarios` and `moments`."""

    @abstractmethod
    def scenarios(self, x: Tensor, n_scenarios: int, generator: Generator) -> Draws:
        """Values (n_contexts, n_scenarios, n_outcomes) and weights, with gradients."""

    @abstractmethod
    def common_scenarios(self, x: Tensor, noise: Tensor, draws: Any) -> Tensor:
        """Equally weighted scenarios; all contexts share the noise (n_scenarios, 1, n_noises)."""

    @abstractmethod
    def moments(self, x: Tensor, draws: Any) -> tuple[Tensor, Tensor]:
        """Mean and variance of each draw's distribution, (n_draws, n_contexts, n_outcomes)."""

    @abstractmethod
    def divergence(self) -> Tensor:
        """Kullback–Leibler divergence from the prior, () or of each member (n_members,)."""

    def rated_parameters(self) -> list[tuple[float, list[nn.Parameter]]]:
        """Parameters with the same step, and that step in units of the learning rate."""
        return [(1.0, list(self.parameters()))]

    def update_posterior(self, x: Tensor) -> None:
        """Compute what follows from the weights and the training rows; called after an epoch."""


class LayeredNetwork(Network):
    """Fully connected layers with a distribution of weights, and a head."""

    def __init__(self, layout: Layout, weights: Weights, head: Head) -> None:
        super().__init__()
        self.layout, self.weights, self.head = layout, weights, head

    @property
    def n_noises(self) -> int:
        return self.head.n_noises

    def draw(self, n_draws: int, generator: Generator) -> Tensor:
        return self.weights.draw(n_draws, generator)

    def divergence(self) -> Tensor:
        return self.weights.divergence()

    def loss(
        self,
        x: Tensor,
        y: Tensor,
        n_draws: int,
        generator: Generator,
        censored: Tensor | None = None,
    ) -> Tensor:
        """Negative log-likelihood per outcome, averaged over draws of the weights."""
        outputs = self.layout.forward(x, self.weights.draw(n_draws, generator))
        if censored is None:
            return self.head.negative_log_likelihood(outputs, y)
        return self.head.censored_loss(outputs, y, censored)

    def scenarios(self, x: Tensor, n_scenarios: int, generator: Generator) -> Draws:
        outputs = self.layout.forward(x, self.weights.draw(n_scenarios, generator))
        noise = stratified_normals(n_scenarios, len(x), self.head.n_noises, generator)
        noise = noise.to(x.device)
        return self.head.scenarios(outputs, noise)

    @torch.no_grad()
    def common_scenarios(self, x: Tensor, noise: Tensor, draws: Tensor) -> Tensor:
        return self.head.equal_scenarios(self._outputs(x, draws), noise)

    @torch.no_grad()
    def moments(self, x: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        return self.head.moments(self._outputs(x, draws))

    def _outputs(self, x: Tensor, weights: Tensor) -> Tensor:
        """Outputs of all draws, a few draws at a time to bound the memory of hidden layers."""
        at_a_time = max(1, _MAX_ACTIVATIONS // (len(x) * max(self.layout.sizes)))
        parts = [self.layout.forward_reproducible(x, part) for part in weights.split(at_a_time)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)
