"""The default Bayesian network for tables: a posterior with several modes, each with a Gaussian.

    y = q_k(x, eps) + phi_k(x)' delta,    k uniform over members,  delta ~ N(0, Sigma_k),  eps ~ N(0, 1)

q_k(x, .) is member k's quantile function (`QuantileHead`), phi_k its last hidden layer, Sigma_k the
closed-form Gaussian posterior of a shift of its last layer (`LastLayer`). Members start from different
draws of the prior, see different rows (each holds out one fold, which picks its best epoch), and pass
through every layer in one batched product. `MeanField` is the other inference: a Gaussian on every
weight, trained with local reparametrisation and reaching the closed-form optimum of linear models.

Map: scaling -> embedding and layers -> heads -> inference -> training -> the estimator. Shapes are
(members or draws, contexts, width) inside, (contexts, scenarios, outcomes) outside. An ensemble is more
members: `BayesianNetwork(n_members=16)`. Only numpy, scipy and torch are imported.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats.qmc import Sobol
from torch import nn
from torch.nn.functional import silu

_LOG_2PI = math.log(2 * math.pi)


# ------------------------------------------------------------------------------------- scaling


@dataclass(frozen=True)
class RobustScaling:
    """Median and interquartile range per column, then a smooth clip at +-`limit`.

    Columns that never change are dropped. A column whose quartiles coincide (mostly one value) is
    scaled by half its range.
    """

    kept: np.ndarray  # (n_features,) of bool
    centre: np.ndarray
    scale: np.ndarray
    limit: float = 3.0

    @classmethod
    def from_rows(cls, X: np.ndarray) -> RobustScaling:
        kept = X.max(axis=0) > X.min(axis=0)
        X = X[:, kept]
        low, centre, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
        half_range = (X.max(axis=0) - X.min(axis=0)) / 2
        return cls(kept, centre, np.where(high > low, high - low, half_range))

    def __call__(self, X: np.ndarray) -> torch.Tensor:
        """Inputs (n_contexts, kept columns)."""
        z = (X[:, self.kept] - self.centre) / self.scale
        return torch.from_numpy(z / np.sqrt(1 + (z / self.limit) ** 2)).float()


# ------------------------------------------------------------------------- embedding and layers


@dataclass(frozen=True)
class Architecture:
    """Sizes of the network. `n_frequencies=0` feeds the plain columns."""

    hidden_sizes: tuple[int, ...] = (128, 128)
    n_frequencies: int = 8
    frequency_scale: float = 0.2  # std of the cosines' frequencies, per interquartile range
    embedding_size: int = 3  # learned numbers per column, beside the column itself
    learn_scales: bool = True  # one factor per input


class PeriodicEmbedding(nn.Module):
    """Each column, and a few learned combinations of cosines of it (PBLD of RealMLP)."""

    def __init__(
        self, n_members: int, n_columns: int, size: Architecture, generator: torch.Generator
    ) -> None:
        super().__init__()
        shape = (n_members, n_columns, 1, size.n_frequencies)
        std = 2 * math.pi * size.frequency_scale
        limit = 1 / math.sqrt(max(size.n_frequencies, 1))
        self.frequency = nn.Parameter(std * torch.randn(shape, generator=generator))
        self.phase = nn.Parameter(math.pi * _uniform(shape, generator))
        self.mix = nn.Parameter(
            limit
            * _uniform((n_members, n_columns, size.n_frequencies, size.embedding_size), generator)
        )
        self.offset = nn.Parameter(
            limit * _uniform((n_members, n_columns, 1, size.embedding_size), generator)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(members, contexts, columns * (1 + embedding size)) of (members or 1, contexts, columns)."""
        columns = x.transpose(1, 2)[..., None]
        waves = (columns * self.frequency + self.phase).cos() @ self.mix + self.offset
        waves = waves.permute(0, 2, 1, 3).flatten(2)
        return torch.cat([x.expand(len(waves), -1, -1), waves], -1)


class MemberLinear(nn.Module):
    """A linear layer for each member, in the neural-tangent parametrisation: x W / sqrt(inputs) + b.

    Weights start as draws of their prior N(0, 1). With `initial_std` each weight is a Gaussian.
    """

    def __init__(
        self,
        n_members: int,
        inputs: int,
        outputs: int,
        generator: torch.Generator,
        bias_limit: float = 1.0,
        initial_std: float | None = None,
    ) -> None:
        super().__init__()
        self.gain = inputs**-0.5
        self.weight = nn.Parameter(torch.randn((n_members, inputs, outputs), generator=generator))
        self.bias = nn.Parameter(bias_limit * _uniform((n_members, 1, outputs), generator))
        self.is_gaussian = initial_std is not None
        if initial_std is not None:
            start = math.log(initial_std)
            self.log_std_weight = nn.Parameter(torch.full_like(self.weight, start))
            self.log_std_bias = nn.Parameter(torch.full_like(self.bias, start))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """At the means."""
        return torch.baddbmm(self.bias, x, self.weight * self.gain)

    def local_draw(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """A draw of the outputs for every context by itself (local reparametrisation).

        The second half of the contexts gets the negatives of the first half's noise.
        """
        mean = self(x)
        if not self.is_gaussian:
            return mean
        variance = torch.baddbmm(
            (2 * self.log_std_bias).exp(),
            x.square(),
            (2 * self.log_std_weight).exp() * self.gain**2,
        )
        n_members, n_contexts, outputs = mean.shape
        noise = torch.randn((n_members, n_contexts // 2, outputs), generator=generator)
        return torch.addcmul(mean, variance.sqrt(), torch.cat([noise, -noise], 1))

    def draw(
        self, members: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights and biases of the members named, one draw for each, with gradients."""
        weight, bias = self.weight[members], self.bias[members]
        if self.is_gaussian:
            noise = [torch.randn(part.shape, generator=generator) for part in (weight, bias)]
            weight = weight + self.log_std_weight[members].exp() * noise[0]
            bias = bias + self.log_std_bias[members].exp() * noise[1]
        return weight * self.gain, bias

    def divergence(self, prior_std: float) -> torch.Tensor:
        """Kullback-Leibler divergence from N(0, prior_std^2), of each member (members,)."""
        total = torch.zeros(len(self.weight))
        for mean, log_std in ((self.weight, self.log_std_weight), (self.bias, self.log_std_bias)):
            squares = ((2 * log_std).exp() + mean.square()) / (2 * prior_std**2)
            total = total + (squares - log_std + math.log(prior_std) - 0.5).flatten(1).sum(1)
        return total


class Network(nn.Module):
    """Embedding, a learned scale per input, hidden layers with SiLU, and a linear last layer."""

    def __init__(
        self,
        n_members: int,
        n_columns: int,
        n_outputs: int,
        size: Architecture,
        generator: torch.Generator,
        initial_std: float | None = None,
    ) -> None:
        super().__init__()
        self.n_members = n_members
        width = n_columns
        self.embedding = None
        if size.n_frequencies:
            self.embedding = PeriodicEmbedding(n_members, n_columns, size, generator)
            width = n_columns * (1 + size.embedding_size)
        self.scale = nn.Parameter(torch.ones(n_members, 1, width)) if size.learn_scales else None
        layers = []
        for outputs in size.hidden_sizes:
            layers.append(
                MemberLinear(n_members, width, outputs, generator, initial_std=initial_std)
            )
            width = outputs
        self.hidden = nn.ModuleList(layers)
        self.last = MemberLinear(n_members, width, n_outputs, generator, 0.0, initial_std)

    @property
    def layers(self) -> list[MemberLinear]:
        return [*self.hidden, self.last]  # type: ignore[list-item]

    def inputs(self, x: torch.Tensor) -> torch.Tensor:
        """(members, contexts, width) of (members, contexts, columns) or (contexts, columns)."""
        x = x if x.dim() == 3 else x[None]
        x = x if self.embedding is None else self.embedding(x)
        x = x if self.scale is None else x * self.scale
        return x.expand(self.n_members, -1, -1)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """The last hidden layer at the means, (members, contexts, width)."""
        hidden = self.inputs(x)
        for layer in self.hidden:
            hidden = silu(layer(hidden))
        return hidden

    def local_draw(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Outputs (members, 2 * contexts, outputs), every layer's activations drawn, for training.

        Contexts come twice, with opposite noises: to first order the noise of gradients cancels.
        """
        hidden = self.inputs(x)
        hidden = torch.cat([hidden, hidden], 1)
        for layer in self.layers[:-1]:
            hidden = silu(layer.local_draw(hidden, generator))
        return self.last.local_draw(hidden, generator)

    def through(
        self, x: torch.Tensor, draws: list[tuple[torch.Tensor, torch.Tensor]], members: torch.Tensor
    ) -> torch.Tensor:
        """Outputs (draws, contexts, outputs): all draws of the weights in one product per layer."""
        hidden = self.inputs(x)[members]
        for index, (weight, bias) in enumerate(draws):
            hidden = torch.baddbmm(bias, silu(hidden) if index else hidden, weight)
        return hidden


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return 2 * torch.rand(shape, generator=generator) - 1


# --------------------------------------------------------------------------------------- heads


class Head(ABC):
    """What outputs (..., contexts, width) mean, all in standardised units."""

    n_outcomes: int

    @property
    @abstractmethod
    def width(self) -> int:
        """Outputs that the head needs."""

    @abstractmethod
    def loss(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Mean loss of each member (members,); also what a hold-out is judged by."""

    @abstractmethod
    def nats(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Mean negative log-likelihood per context (members,), for variational training."""

    @abstractmethod
    def values(self, outputs: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Outcomes (..., contexts, n_outcomes) from standard normal noise that broadcasts to it."""

    @abstractmethod
    def noise_std(self, outputs: torch.Tensor) -> torch.Tensor:
        """Spread of the noise (..., contexts, n_outcomes)."""

    @abstractmethod
    def normal_scores(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The noise that gives y, (..., contexts, n_outcomes)."""


#: Levels of the quantiles that are learned; the middle one is the median.
_LEVELS = np.array([0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975])


@dataclass(frozen=True)
class QuantileHead(Head):
    """Quantiles at fixed levels, joined by lines in the normal score; scored by the pinball loss.

        y = q(eps),   q piecewise linear through (z_j, q_j),   z_j the normal quantile of level j

    A Gaussian is the special case of one line, and a point mass is a flat piece: it suits skewed
    outcomes and outcomes that are often zero. Beyond the last levels the last line goes on.
    """

    n_outcomes: int

    @property
    def _z(self) -> torch.Tensor:
        return torch.from_numpy(ndtri(_LEVELS)).float()

    @property
    def width(self) -> int:
        return len(_LEVELS) * self.n_outcomes

    def quantiles(self, outputs: torch.Tensor) -> torch.Tensor:
        """(..., contexts, n_outcomes, levels), as the network gives them: they may cross."""
        return outputs.unflatten(-1, (self.n_outcomes, len(_LEVELS)))

    def loss(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Pinball loss, mean over levels, outcomes and contexts."""
        above = y[..., None] - self.quantiles(outputs)
        levels = torch.from_numpy(_LEVELS).to(above)
        return torch.maximum(levels * above, (levels - 1) * above).flatten(1).mean(1)

    def nats(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """That of asymmetric Laplace noise at its best scale: the log of the pinball loss, per outcome."""
        return self.n_outcomes * (self.loss(outputs, y) + 1e-6).log()

    def values(self, outputs: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """The quantile function at the noise, differentiable in both."""
        knots, z = self.quantiles(outputs).sort(-1).values, self._z
        noise = noise.expand(knots.shape[:-1])
        left = torch.searchsorted(z[1:-1], noise.contiguous())[..., None]
        low, high = knots.gather(-1, left)[..., 0], knots.gather(-1, left + 1)[..., 0]
        left = left[..., 0]
        return low + (noise - z[left]) / (z[left + 1] - z[left]) * (high - low)

    def noise_std(self, outputs: torch.Tensor) -> torch.Tensor:
        """From the distance of the 20 % and 80 % quantiles."""
        quantiles, z = self.quantiles(outputs), self._z
        return (quantiles[..., 9] - quantiles[..., 3]) / (z[9] - z[3])

    def normal_scores(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Inverse of `values`, within +-4; the middle of a flat piece."""
        knots, z = self.quantiles(outputs).sort(-1).values, self._z
        target = y.expand(knots.shape[:-1])[..., None].contiguous()
        found = []
        for right in (False, True):
            left = torch.searchsorted(knots[..., 1:-1].contiguous(), target, right=right)
            low, high = knots.gather(-1, left), knots.gather(-1, left + 1)
            share = (target - low) / (high - low).clamp_min(1e-9)
            found.append((z[left] + share * (z[left + 1] - z[left])).clamp(-4, 4))
        return (0.5 * (found[0] + found[1]))[..., 0]


@dataclass(frozen=True)
class GaussianHead(Head):
    """A mean and a log-std per outcome; with `known_std` only a mean."""

    n_outcomes: int
    known_std: float | None = None

    @property
    def width(self) -> int:
        return self.n_outcomes * (1 if self.known_std else 2)

    def _split(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.known_std:
            return outputs, torch.full_like(outputs, math.log(self.known_std))
        mean, log_std = outputs.split(self.n_outcomes, -1)
        return mean, log_std.clamp(-5.0, 4.0)

    def loss(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.nats(outputs, y)

    def nats(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        mean, log_std = self._split(outputs)
        rows = 0.5 * ((y - mean) * (-log_std).exp()).square() + log_std + 0.5 * _LOG_2PI
        return rows.sum(-1).mean(1)

    def values(self, outputs: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        mean, log_std = self._split(outputs)
        return mean + noise * log_std.exp()

    def noise_std(self, outputs: torch.Tensor) -> torch.Tensor:
        return self._split(outputs)[1].exp()

    def normal_scores(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        mean, log_std = self._split(outputs)
        return (y - mean) * (-log_std).exp()


# ----------------------------------------------------------------------------------- inference


class Inference(ABC):
    """Which weights are uncertain, how they are trained, and how they are drawn."""

    initial_std: float | None = None  # of every weight, where all are Gaussians
    log_std_rate: float = 1.0  # step of log-stds, in units of the learning rate

    @abstractmethod
    def objective(self, network: Network, head: Head, x: torch.Tensor, y: torch.Tensor,
                  n_rows: int, generator: torch.Generator) -> torch.Tensor:  # fmt: skip
        """Loss of one batch (members,), called once a step."""

    def finish(self, network: Network, head: Head, x: torch.Tensor) -> torch.Tensor | None:
        """What is computed once after training, from each member's rows; stored with the network."""
        return None

    @abstractmethod
    def scenarios(self, network: Network, head: Head, x: torch.Tensor, state: torch.Tensor | None,
                  noise: torch.Tensor, generator: torch.Generator) -> torch.Tensor:  # fmt: skip
        """Outcomes (n_scenarios, contexts, n_outcomes), with gradients.

        `noise` (n_scenarios, contexts or 1, n_outcomes) is standard normal; each scenario is one draw
        of the weights, and members have equal shares of them.
        """


@dataclass(frozen=True)
class LastLayer(Inference):
    """Features at their best, and the exact Gaussian posterior of the last layer's location weights.

        Sigma_k = (sum_i phi_i phi_i' / s_i^2 + I / prior_std^2)^-1

    phi are member k's last hidden layer / sqrt(width) and a constant, s_i the noise's spread at row i:
    for a linear model with Gaussian noise this is the posterior. It costs one factorisation after a
    plain fit, nothing in training, and one product per batch of scenarios; it grows in directions that
    no row has seen, which independent weights cannot.
    """

    prior_std: float = 1.0
    noise_floor: float = 0.02  # smallest s_i, in units of the outcome's std

    def objective(self, network: Network, head: Head, x: torch.Tensor, y: torch.Tensor,
                  n_rows: int, generator: torch.Generator) -> torch.Tensor:  # fmt: skip
        return head.loss(network.last(network.features(x)), y)

    @torch.no_grad()
    def finish(self, network: Network, head: Head, x: torch.Tensor) -> torch.Tensor:
        """Inverse Cholesky factors (members, n_outcomes, width + 1, width + 1): Sigma = A' A."""
        features = network.features(x)
        std = head.noise_std(network.last(features)).clamp_min(self.noise_floor).double()
        phi = self._location(features).double()
        eye = torch.eye(phi.shape[-1], dtype=torch.float64)
        precisions = torch.stack(
            [(phi / s[..., None].square()).transpose(1, 2) @ phi for s in std.unbind(-1)], 1
        )
        factor = torch.linalg.cholesky(precisions + eye / self.prior_std**2)
        inverse = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
        return inverse.float()

    def scenarios(self, network: Network, head: Head, x: torch.Tensor, state: torch.Tensor | None,
                  noise: torch.Tensor, generator: torch.Generator) -> torch.Tensor:  # fmt: skip
        assert state is not None
        members = _shares(len(noise), network.n_members)
        features = network.features(x)
        phi, outputs = self._location(features), network.last(features)
        shape = (len(noise), head.n_outcomes, phi.shape[-1])
        drawn = torch.randn(shape, generator=generator)
        values = []
        for member in range(network.n_members):  # contexts and draws in one product for each
            mine = members == member
            if not mine.any():
                continue
            delta = torch.einsum("nop,opw->now", drawn[mine], state[member])
            shift = torch.einsum("cw,now->nco", phi[member], delta)
            count = int(mine.sum())
            values.append(head.values(outputs[member].expand(count, -1, -1), noise[mine]) + shift)
        return torch.cat(values)

    @staticmethod
    def _location(features: torch.Tensor) -> torch.Tensor:
        scaled = features / math.sqrt(features.shape[-1])
        return torch.cat([scaled, torch.ones_like(scaled[..., :1])], -1)


@dataclass(frozen=True)
class MeanField(Inference):
    """Every weight an independent Gaussian, by the evidence lower bound (`kl_weight=1`).

    Activations are drawn instead of weights in training, in opposite pairs; log-stds have their own step. The divergence
    counts from the first step on, so that stds find their place while means still move.
    """

    kl_weight: float = 1.0
    prior_std: float = 1.0
    initial_std: float = 0.1
    log_std_rate: float = 0.3

    def objective(self, network: Network, head: Head, x: torch.Tensor, y: torch.Tensor,
                  n_rows: int, generator: torch.Generator) -> torch.Tensor:  # fmt: skip
        nats = head.nats(network.local_draw(x, generator), torch.cat([y, y], -2))
        divergence = sum(layer.divergence(self.prior_std) for layer in network.layers)
        return nats + self.kl_weight / n_rows * divergence

    def scenarios(self, network: Network, head: Head, x: torch.Tensor, state: torch.Tensor | None,
                  noise: torch.Tensor, generator: torch.Generator) -> torch.Tensor:  # fmt: skip
        members = _shares(len(noise), network.n_members)
        draws = [layer.draw(members, generator) for layer in network.layers]
        return head.values(network.through(x, draws, members), noise)


def _shares(n_scenarios: int, n_members: int) -> torch.Tensor:
    """The member of each scenario: neighbours share one, since a run of Sobol points is even."""
    return torch.arange(n_scenarios) * n_members // n_scenarios


# ------------------------------------------------------------------------------------ training


@dataclass(frozen=True)
class Training:
    """The loop: Adam, learning rates per kind of parameter, the schedule coslog4.

    Small tables get small batches, large ones fewer epochs: a batch is an eighth of the rows, as a
    power of two within `batch_bounds`.
    """

    epochs: int = 256
    max_steps: int = 4000
    learning_rate: float = 0.15
    bias_rate: float = 0.1
    embedding_rate: float = 0.1
    scale_rate: float = 6.0
    batch_share: float = 1 / 8
    batch_bounds: tuple[int, int] = (32, 256)
    betas: tuple[float, float] = (0.9, 0.95)
    n_validations: int = 128

    def batch_size(self, n_rows: int) -> int:
        low, high = self.batch_bounds
        return min(
            n_rows, max(low, min(high, 2 ** round(math.log2(max(n_rows * self.batch_share, 1)))))
        )

    def optimiser(self, network: Network, log_std_rate: float) -> torch.optim.Optimizer:
        groups: dict[float, list[nn.Parameter]] = {}
        for name, parameter in network.named_parameters():
            if name.startswith("embedding"):
                rate = self.embedding_rate
            elif name == "scale":
                rate = self.scale_rate
            elif "log_std" in name:
                rate = log_std_rate
            else:
                rate = self.bias_rate if name.endswith("bias") else 1.0
            groups.setdefault(rate, []).append(parameter)
        found = [
            {"params": group, "start": rate * self.learning_rate} for rate, group in groups.items()
        ]
        return torch.optim.Adam(found, lr=self.learning_rate, betas=self.betas, fused=True)


def coslog4(progress: float) -> float:
    """Four cosine waves, each twice as long as the one before, from 0 to 1 and back to 0."""
    return 0.5 - 0.5 * math.cos(2 * math.pi * math.log2(1 + 15 * progress))


def train(
    network: Network,
    head: Head,
    inference: Inference,
    settings: Training,
    x: torch.Tensor,
    y: torch.Tensor,
    folds: Folds,
    generator: torch.Generator,
) -> list[dict[str, float]]:
    """Train all members side by side, each on its rows; each keeps the epoch its hold-out liked best."""
    optimiser = settings.optimiser(network, inference.log_std_rate)
    n_rows = folds.train.shape[1]
    size = settings.batch_size(n_rows)
    per_epoch = max(1, n_rows // size)
    epochs = max(1, min(settings.epochs, settings.max_steps // per_epoch))
    every = max(1, epochs // settings.n_validations)
    parameters = list(network.parameters())
    best = [parameter.detach().clone() for parameter in parameters]
    best_loss = torch.full((network.n_members,), math.inf)
    history, step = [], 0
    for epoch in range(epochs):
        total = 0.0
        order = torch.rand(folds.train.shape, generator=generator).argsort(1)
        order = folds.train.gather(1, order)
        for batch in order[:, : per_epoch * size].split(size, 1):
            for group in optimiser.param_groups:
                group["lr"] = group["start"] * coslog4(step / (epochs * per_epoch))
            losses = inference.objective(network, head, x[batch], y[batch], n_rows, generator)
            loss = losses.sum()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            total += loss.item() / network.n_members / per_epoch
            step += 1
        record = {"epoch": epoch + 1, "loss": total}
        if not math.isfinite(total):
            break
        if folds.held is not None and ((epoch + 1) % every == 0 or epoch + 1 == epochs):
            with torch.no_grad():
                outputs = network.last(network.features(x[folds.held]))
                losses = head.loss(outputs, y[folds.held])
            record["validation"] = float(losses.mean())
            better = losses < best_loss
            best_loss = torch.where(better, losses, best_loss)
            for kept, parameter in zip(best, parameters, strict=True):
                kept[better] = parameter.detach()[better]
        history.append(record)
    if folds.held is not None:
        with torch.no_grad():
            for kept, parameter in zip(best, parameters, strict=True):
                parameter.copy_(kept)
    return history


@dataclass(frozen=True)
class Folds:
    """Rows that each member trains on and is judged by, (members, rows); all of them if `held` is None."""

    train: torch.Tensor
    held: torch.Tensor | None

    @classmethod
    def make(cls, n_rows: int, n_members: int, n_folds: int, generator: torch.Generator) -> Folds:
        """Member k holds out fold k; after `n_folds` members the rows are dealt anew.

        A few rows may be left out of a member's hold-out, so that all hold as many.
        """
        if n_folds < 2 or n_rows < 2 * n_folds:
            return cls(torch.arange(n_rows).expand(n_members, -1), None)
        size = n_rows // n_folds
        train, held = [], []
        for member in range(n_members):
            fold = member % n_folds
            if fold == 0:
                order = torch.randperm(n_rows, generator=generator)
            mine = torch.zeros(n_rows, dtype=torch.bool)
            mine[order[fold * size : (fold + 1) * size]] = True
            held.append(mine.nonzero()[:, 0])
            train.append((~mine).nonzero()[:, 0])
        return cls(torch.stack(train), torch.stack(held))


# ----------------------------------------------------------------------------------- estimator


@dataclass
class BayesianNetwork:
    """Fit on tables of numbers, and draw joint scenarios of the outcomes.

    Parameters
    ----------
    n_members : int
        Modes of the posterior. 16 make an ensemble of four default networks.
    n_folds : int
        A member holds out one in so many rows; 1 trains all on all rows to the last epoch.
    head : type
        `QuantileHead` or `GaussianHead`.
    standardise : bool
        Whether inputs and outcomes are scaled before they reach the network.
    """

    n_members: int = 4
    n_folds: int = 4
    architecture: Architecture = field(default_factory=Architecture)
    head: type[Head] | Head = QuantileHead
    inference: Inference = field(default_factory=LastLayer)
    training: Training = field(default_factory=Training)
    standardise: bool = True
    random_state: int = 0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """X (n_contexts, n_features), y (n_contexts,) or (n_contexts, n_outcomes)."""
        X = np.asarray(X, dtype=float)
        y = np.asarray(y, dtype=float).reshape(len(X), -1)
        n_features, n_outcomes = X.shape[1], y.shape[1]
        if self.standardise:
            self.scaling_ = RobustScaling.from_rows(X)
            self.mean_, self.std_ = y.mean(axis=0), np.maximum(y.std(axis=0), 1e-12)
        else:
            ones = np.ones(n_features)
            self.scaling_ = RobustScaling(ones > 0, 0 * ones, ones, math.inf)
            self.mean_, self.std_ = np.zeros(n_outcomes), np.ones(n_outcomes)
        x = self.scaling_(X)
        target = torch.from_numpy((y - self.mean_) / self.std_).float()
        generator = torch.Generator().manual_seed(self.random_state)
        self.head_ = self.head if isinstance(self.head, Head) else self.head(n_outcomes)  # type: ignore[call-arg]
        self.network_ = Network(
            self.n_members,
            x.shape[1],
            self.head_.width,
            self.architecture,
            generator,
            self.inference.initial_std,
        )
        folds = Folds.make(len(X), self.n_members, self.n_folds, generator)
        self.history_ = train(
            self.network_, self.head_, self.inference, self.training, x, target, folds, generator
        )
        self.posterior_ = self.inference.finish(self.network_, self.head_, x[folds.train])
        self.copula_ = self._copula(x, target, folds)
        return self

    @torch.no_grad()
    def _copula(self, x: torch.Tensor, y: torch.Tensor, folds: Folds) -> torch.Tensor:
        """Root of the noises' correlations, from rows that a member has not seen."""
        d = y.shape[1]
        if d == 1:
            return torch.ones(1, 1)
        rows = folds.train if folds.held is None else folds.held
        outputs = self.network_.last(self.network_.features(x[rows]))
        scores = self.head_.normal_scores(outputs, y[rows]).flatten(0, 1)
        scores = scores - scores.mean(0)
        covariance = scores.T @ scores
        spread = covariance.diagonal().clamp_min(1e-9).sqrt()
        correlation = covariance / spread[:, None] / spread
        n = len(y)
        # Shrunk as if d more rows had shown no correlation.
        return torch.linalg.cholesky((n * correlation + d * torch.eye(d)) / (n + d))

    def scenarios(
        self, x: torch.Tensor, noise: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """(n_scenarios, n_contexts, n_outcomes) in the user's units, with gradients in the weights.

        `x` are scaled contexts, `noise` (n_scenarios, n_contexts or 1, n_outcomes) independent normals.
        """
        correlated = noise @ self.copula_.T
        values = self.inference.scenarios(
            self.network_, self.head_, x, self.posterior_, correlated, generator
        )
        return torch.from_numpy(self.mean_).float() + values * torch.from_numpy(self.std_).float()

    @torch.no_grad()
    def sample(self, X: np.ndarray, n_scenarios: int = 64, seed: int = 0) -> np.ndarray:
        """Scenarios (n_contexts, n_scenarios, n_outcomes); contexts share noise and draws of the weights."""
        noise = torch.from_numpy(_sobol_normals(n_scenarios, len(self.mean_), seed)).float()[
            :, None
        ]
        x = self.scaling_(np.asarray(X, dtype=float))
        parts = [
            self.scenarios(part, noise, torch.Generator().manual_seed(seed)).transpose(0, 1)
            for part in x.split(2048)
        ]
        return torch.cat(parts).double().numpy()

    @torch.no_grad()
    def epistemic_aleatoric(
        self, X: np.ndarray, n_draws: int = 64, seed: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Variance over draws of the weights of the mean, and mean of the noise's variance.

        Both (n_contexts, n_outcomes). Every draw of the weights meets the same 32 noises.
        """
        grid = torch.from_numpy(ndtri((np.arange(32) + 0.5) / 32)).float()
        x = self.scaling_(np.asarray(X, dtype=float))
        seen = []
        for shock in grid:  # the same generator, so the same draws of the weights
            noise = shock.expand(n_draws, 1, len(self.mean_))
            values = self.inference.scenarios(
                self.network_,
                self.head_,
                x,
                self.posterior_,
                noise,
                torch.Generator().manual_seed(seed),
            )
            seen.append(values.double())
        values = torch.stack(seen)  # (noises, draws, contexts, outcomes)
        epistemic, aleatoric = values.mean(0).var(0), values.var(0, correction=0).mean(0)
        return epistemic.numpy() * self.std_**2, aleatoric.numpy() * self.std_**2


def _sobol_normals(n_draws: int, n_columns: int, seed: int) -> np.ndarray:
    """Standard normals (n_draws, n_columns) that leave no gaps."""
    points = Sobol(n_columns, rng=np.random.default_rng(seed)).random_base2(
        max(n_draws - 1, 0).bit_length()
    )
    return ndtri(points[:n_draws] * (1 - 2**-30) + 2**-31)
