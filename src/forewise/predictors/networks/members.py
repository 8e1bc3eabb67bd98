"""A network with members: several networks of one shape that pass through every layer together.

Shapes are (n_members, n_contexts, width) inside. Which weights are uncertain, and how they are
trained and drawn, is the `Inference`; what outputs mean is the `MemberHead`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import silu

from forewise.predictors.networks.embeddings import Embedding, product, uniform
from forewise.predictors.networks.heads import Draws
from forewise.predictors.networks.member_heads import MemberHead
from forewise.predictors.networks.network import Network
from forewise.predictors.sampling import drawn_by_row, stratified_normals

#: Steps of parameters in units of the learning rate, those of RealMLP.
_BIAS_RATE, _EMBEDDING_RATE, _SCALE_RATE = 0.1, 0.1, 6.0


class MemberLinear(nn.Module):
    """A linear layer for each member, in the neural-tangent parametrisation: x W / √inputs + b.

    Weights start as draws of their prior, N(0, 1). With `initial_std` each is a Gaussian.
    """

    def __init__(
        self,
        n_members: int,
        inputs: int,
        outputs: int,
        generator: Generator,
        bias_limit: float = 1.0,
        initial_std: float | None = None,
    ) -> None:
        super().__init__()
        self.gain = inputs**-0.5
        self.weight = nn.Parameter(torch.randn((n_members, inputs, outputs), generator=generator))
        self.bias = nn.Parameter(bias_limit * uniform((n_members, 1, outputs), generator))
        self.is_gaussian = initial_std is not None
        if initial_std is not None:
            start = math.log(initial_std)
            self.log_std_weight = nn.Parameter(torch.full_like(self.weight, start))
            self.log_std_bias = nn.Parameter(torch.full_like(self.bias, start))

    def forward(self, x: Tensor) -> Tensor:
        """At the means."""
        return product(x, self.weight * self.gain) + self.bias

    def local_draw(self, x: Tensor, generator: Generator) -> Tensor:
        """A draw of the outputs for every context by itself (local reparametrisation).

        The second half of the contexts has the negatives of the first half's noise.
        """
        mean = self(x)
        variance = x.square() @ ((2 * self.log_std_weight).exp() * self.gain**2)
        std = (variance + (2 * self.log_std_bias).exp()).sqrt()
        n_members, n_contexts, outputs = mean.shape
        noise = drawn_by_row(torch.randn, (n_members, n_contexts // 2, outputs), 1, generator)
        noise = noise.to(mean.device)
        return torch.addcmul(mean, std, torch.cat([noise, -noise], 1))

    def draw(self, of: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Weights and biases of the members `of` (n_draws,), one draw of each, with gradients."""
        noises = [
            torch.randn((len(of), *part.shape[1:]), generator=generator).to(part.device)
            for part in (self.weight, self.bias)
        ]
        weight = torch.addcmul(self.weight[of], self.log_std_weight.exp()[of], noises[0])
        bias = torch.addcmul(self.bias[of], self.log_std_bias.exp()[of], noises[1])
        return weight * self.gain, bias

    def divergence(self, prior_std: float) -> Tensor:
        """Kullback–Leibler divergence from N(0, prior_std²), of each member (n_members,)."""
        total = self.weight.new_zeros(len(self.weight))
        for mean, log_std in ((self.weight, self.log_std_weight), (self.bias, self.log_std_bias)):
            squares = ((2 * log_std).exp() + mean.square()) / (2 * prior_std**2)
            total = total + (squares - log_std + math.log(prior_std) - 0.5).flatten(1).sum(1)
        return total


#: Outputs (any, n_contexts, width), which of them each scenario has (n_scenarios,), and what is
#: added to its values (n_scenarios, n_contexts, n_outcomes).
Outputs = tuple[Tensor, Tensor, Tensor | None]


class Inference(ABC):
    """Which weights are uncertain, how they are trained, and how they are drawn.

    Examples
    --------
    >>> import forewise as fw
    >>> kinds = [fw.predictors.LastLayer, fw.predictors.MeanField]
    >>> all(issubclass(kind, fw.predictors.Inference) for kind in kinds)
    True
    """

    prior_std: float
    kl_weight: float = 0.0  # of the divergence from the prior
    initial_std: float | None = None  # of every weight, where all are Gaussians
    log_std_rate: float = 1.0  # step of log-stds, in units of the learning rate

    @abstractmethod
    def loss(
        self,
        network: MemberNetwork,
        x: Tensor,
        y: Tensor,
        generator: Generator,
        censored: Tensor | None = None,
    ) -> Tensor:
        """Loss of one batch (n_members,), without the divergence; called once per step."""

    def prior(self, n_members: int, n_outcomes: int, width: int) -> Tensor:
        """The posterior before any row is seen; called when the network is built."""
        return torch.zeros(0)

    def posterior(self, network: MemberNetwork, x: Tensor) -> Tensor:
        """What is computed from the training rows, of the shape of `prior`; stored."""
        return network.posterior

    @abstractmethod
    def draw(self, network: MemberNetwork, n_draws: int, generator: Generator) -> Any:
        """Draws of the weights, members having equal shares; kept by a fitted predictor."""

    @abstractmethod
    def outputs(self, network: MemberNetwork, x: Tensor, draws: Any) -> Outputs:
        """The network's outputs for each draw, with gradients unless they are off."""


class MemberNetwork(Network):
    """An embedding, hidden layers with SiLU, and a linear last layer, for each member.

    `posterior` is what the inference computes from the training rows, `noise_root` a root of the
    correlations of the outcomes' noises.
    """

    betas = (0.9, 0.95)
    posterior: Tensor
    noise_root: Tensor

    def __init__(
        self,
        n_members: int,
        n_columns: int,
        n_outcomes: int,
        hidden_sizes: tuple[int, ...],
        embedding: Embedding,
        head: MemberHead,
        inference: Inference,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.n_members, self.n_outcomes = n_members, n_outcomes
        self.head, self.inference = head, inference
        self.embedding = embedding.module(n_members, n_columns, generator)
        width, std = embedding.width(n_columns), inference.initial_std
        hidden = []
        for outputs in hidden_sizes:
            hidden.append(MemberLinear(n_members, width, outputs, generator, 1.0, std))
            width = outputs
        self.hidden: Any = nn.ModuleList(hidden)
        self.last = MemberLinear(n_members, width, head.width(n_outcomes), generator, 0.0, std)
        self.register_buffer("posterior", inference.prior(n_members, n_outcomes, width))
        self.register_buffer("noise_root", torch.eye(n_outcomes))

    @property
    def n_noises(self) -> int:
        return self.n_outcomes

    def rated_parameters(self) -> list[tuple[float, list[nn.Parameter]]]:
        groups: dict[float, list[nn.Parameter]] = {}
        for name, parameter in self.named_parameters():
            kind = name.rpartition(".")[2]
            if kind.startswith("log_std"):
                rate = self.inference.log_std_rate
            elif kind == "scale":
                rate = _SCALE_RATE
            elif name.startswith("embedding"):
                rate = _EMBEDDING_RATE
            else:
                rate = _BIAS_RATE if kind == "bias" else 1.0
            groups.setdefault(rate, []).append(parameter)
        return list(groups.items())

    def inputs(self, x: Tensor) -> Tensor:
        """(n_members, n_contexts, width) of contexts (n_contexts, n_columns), shared or of each."""
        x = x if x.dim() == 3 else x[None]
        return self.embedding(x).expand(self.n_members, -1, -1)

    def features(self, x: Tensor) -> Tensor:
        """The last hidden layer at the means, (n_members, n_contexts, width)."""
        hidden = self.inputs(x)
        for layer in self.hidden:
            hidden = silu(layer(hidden))
        return hidden

    def outputs(self, x: Tensor) -> Tensor:
        """Outputs at the means, (n_members, n_contexts, width of the head)."""
        return self.last(self.features(x))

    def local_draw(self, x: Tensor, generator: Generator) -> Tensor:
        """Outputs (n_members, 2 · n_contexts, ...), every layer's activations drawn, for training.

        Contexts come twice, with opposite noises: to first order the noise of gradients cancels.
        """
        hidden = self.inputs(x)
        hidden = torch.cat([hidden, hidden], 1)
        for layer in self.hidden:
            hidden = silu(layer.local_draw(hidden, generator))
        return self.last.local_draw(hidden, generator)

    def through(self, x: Tensor, layers: list[tuple[Tensor, Tensor]], of: Tensor) -> Tensor:
        """Outputs (n_draws, n_contexts, ...) of drawn layers, each of the member `of`."""
        hidden = self.inputs(x)[of]
        for index, (weight, bias) in enumerate(layers):
            hidden = product(silu(hidden) if index else hidden, weight) + bias
        return hidden

    def draw(self, n_draws: int, generator: Generator) -> Any:
        return self.inference.draw(self, n_draws, generator)

    def scenarios(self, x: Tensor, n_scenarios: int, generator: Generator) -> Draws:
        draws = self.draw(n_scenarios, generator)
        noise = stratified_normals(n_scenarios, x.shape[-2], self.n_outcomes, generator)
        noise = noise.to(x.device)
        return self._values(x, noise, draws).transpose(0, 1), None

    @torch.no_grad()
    def common_scenarios(self, x: Tensor, noise: Tensor, draws: Any) -> Tensor:
        return self._values(x, noise, draws).transpose(0, 1)

    def _values(self, x: Tensor, noise: Tensor, draws: Any) -> Tensor:
        outputs, of, shift = self.inference.outputs(self, x, draws)
        values = self.head.values(outputs, noise @ self.noise_root.T, of)
        return values if shift is None else values + shift

    @torch.no_grad()
    def moments(self, x: Tensor, draws: Any) -> tuple[Tensor, Tensor]:
        outputs, of, shift = self.inference.outputs(self, x, draws)
        mean, variance = (part[of] for part in self.head.moments(outputs))
        return (mean if shift is None else mean + shift), variance

    def divergence(self) -> Tensor:
        layers = [*self.hidden, self.last]
        return torch.stack([layer.divergence(self.inference.prior_std) for layer in layers]).sum(0)

    @torch.no_grad()
    def update_posterior(self, x: Tensor) -> None:
        """From training rows (n_contexts, n_columns), or those of each member."""
        self.posterior.copy_(self.inference.posterior(self, x))

    @torch.no_grad()
    def update_correlations(self, x: Tensor, y: Tensor) -> None:
        """From outcomes that a member has not trained on, (n_members, n_contexts, n_outcomes)."""
        count = self.n_outcomes
        if count == 1:
            return
        scores = self.head.normal_scores(self.outputs(x), y).flatten(0, 1).double()
        scores = scores - scores.mean(0)
        covariance = scores.T @ scores
        spread = covariance.diagonal().clamp_min(1e-9).sqrt()
        correlation = covariance / spread[:, None] / spread
        # Shrunk as by n_outcomes more rows without correlation.
        n_rows, eye = y.shape[-2] * len(y), torch.eye(count).to(correlation)
        shrunk = (n_rows * correlation + count * eye) / (n_rows + count)
        self.noise_root.copy_(torch.linalg.cholesky(shrunk))
