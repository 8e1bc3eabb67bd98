"""Inference: which weights of a network with members are uncertain, and how they are drawn.

`LastLayer` is the default of `BayesianPredictor`, `MeanField` variational inference over all
weights. To add one: a frozen dataclass that derives from `Inference`, exported and
known to storage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from forewise.predictors.networks.members import Inference, MemberNetwork, Outputs
from forewise.validation.parameters import require_number, require_positive

_ROWS_AT_A_TIME = 4096
_VECTOR_WIDTH = 16  # see `embeddings.product`
_MAX_ACTIVATIONS = 2**24  # in memory at a time, when scenarios are drawn without gradients


@dataclass(frozen=True)
class LastLayer(Inference):
    """Features at their best fit, and a Gaussian posterior of the last layer in closed form.

        y = q(x, ε) + φ(x)'δ,    δ ~ N(0, Σ),    Σ = (Σ_i φ_i φ_i' / s_i² + I / prior_std²)⁻¹

    φ are a member's last hidden layer / √width and a constant, s_i the spread of the noise in row
    i. For a linear model with Gaussian noise this is the posterior. It costs one factorisation
    after a plain fit, and grows in directions that no row has seen, which independent weights
    cannot.

    Parameters
    ----------
    prior_std : float
        Standard deviation of every weight of the last layer, in units of the outcome's.
    noise_floor : float
        Smallest s_i, in units of the outcome's standard deviation.

    Examples
    --------
    Half the prior's width: less is believed possible of what no row has shown.

    >>> import forewise as fw
    >>> network = fw.BayesianPredictor(inference=fw.predictors.LastLayer(prior_std=0.5))
    """

    prior_std: float = 1.0
    noise_floor: float = 0.02

    def __post_init__(self) -> None:
        require_positive("prior_std", self.prior_std)
        require_positive("noise_floor", self.noise_floor)

    def loss(
        self,
        network: MemberNetwork,
        x: Tensor,
        y: Tensor,
        generator: Generator,
        censored: Tensor | None = None,
    ) -> Tensor:
        if censored is not None:
            return network.head.censored_loss(network.outputs(x), y, censored)
        return network.head.loss(network.outputs(x), y)

    def prior(self, n_members: int, n_outcomes: int, width: int) -> Tensor:
        return self.prior_std * torch.eye(width + 1).repeat(n_members, n_outcomes, 1, 1)

    def posterior(self, network: MemberNetwork, x: Tensor) -> Tensor:
        """Roots A of Σ = A'A, (n_members, n_outcomes, width + 1, width + 1)."""
        shape = network.posterior.shape
        precision = torch.zeros(shape, dtype=torch.float64, device=x.device)
        eye = torch.eye(shape[-1], dtype=torch.float64, device=x.device)
        for rows in x.split(_ROWS_AT_A_TIME, dim=-2):
            features = network.features(rows)
            std = network.head.noise_std(network.last(features)).clamp_min(self.noise_floor)
            phi = _with_constant(features).double()
            for outcome, spread in enumerate(std.double().unbind(-1)):
                weighted = phi / spread[..., None].square()
                precision[:, outcome] += weighted.transpose(1, 2) @ phi
        factor = torch.linalg.cholesky(precision + eye / self.prior_std**2)
        root = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
        return root.float()

    def draw(self, network: MemberNetwork, n_draws: int, generator: Generator) -> Any:
        """Members of the draws, their places, and δ' (n_members, width + 1, places · outcomes).

        The last width is padded, so that rows round alike wherever they stand.
        """
        of = shares(n_draws, network.n_members)
        counts = torch.bincount(of, minlength=network.n_members)
        most = int(counts.max())
        place = torch.arange(n_draws) - (counts.cumsum(0) - counts)[of]
        roots = network.posterior
        noise = torch.zeros(network.n_members, most, network.n_outcomes, roots.shape[-1])
        drawn = torch.randn((n_draws, *noise.shape[2:]), generator=generator)
        noise[of, place] = drawn
        noise = noise.to(roots.device)
        deltas = torch.einsum("knop,kopw->kwno", noise, roots).flatten(2)
        return of, place, pad(deltas, (0, -deltas.shape[-1] % _VECTOR_WIDTH))

    def outputs(self, network: MemberNetwork, x: Tensor, draws: Any) -> Outputs:
        of, place, deltas = draws
        features = network.features(x)
        n_outcomes = network.n_outcomes
        shifts = _with_constant(features) @ deltas
        # A view (n_members, n_contexts, places, outcomes), without the padding.
        width = shifts.shape[-1] // n_outcomes * n_outcomes
        shifts = shifts[..., :width].unflatten(2, (-1, n_outcomes))
        return network.last(features), of, shifts[of, :, place]


@dataclass(frozen=True)
class MeanField(Inference):
    """Every weight an independent Gaussian, by the evidence lower bound.

    Activations are drawn instead of weights in training, in opposite pairs. The divergence counts
    from the first step on, so that stds find their place while means still move. Weights are in
    units in which their prior is N(0, prior_std²) whatever the layer's width.

    When to use: uncertainty of all layers is wanted, and there are many rows for each weight.

    Parameters
    ----------
    kl_weight : float
        Weight of the divergence from the prior; 1 is the evidence lower bound.
    prior_std, initial_std : float
        Standard deviations of every weight: of its prior, and where training starts.
    log_std_rate : float
        Step of log-stds, in units of the learning rate.

    Examples
    --------
    >>> import forewise as fw
    >>> network = fw.BayesianPredictor(inference=fw.predictors.MeanField(kl_weight=0.1))
    """

    kl_weight: float = 1.0
    prior_std: float = 1.0
    initial_std: float = 0.1
    log_std_rate: float = 0.3

    def __post_init__(self) -> None:
        require_number("kl_weight", self.kl_weight, at_least=0)
        for name in ("prior_std", "initial_std", "log_std_rate"):
            require_positive(name, getattr(self, name))

    def loss(
        self,
        network: MemberNetwork,
        x: Tensor,
        y: Tensor,
        generator: Generator,
        censored: Tensor | None = None,
    ) -> Tensor:
        outputs = network.local_draw(x, generator)
        if censored is not None:
            both = torch.cat([censored, censored], -2)
            return network.head.censored_loss(outputs, torch.cat([y, y], -2), both)
        return network.head.negative_log_likelihood(outputs, torch.cat([y, y], -2))

    def draw(self, network: MemberNetwork, n_draws: int, generator: Generator) -> Any:
        """Members of the draws, and weights and biases of each layer."""
        of = shares(n_draws, network.n_members)
        layers = [*network.hidden, network.last]
        return of, [layer.draw(of, generator) for layer in layers]

    def outputs(self, network: MemberNetwork, x: Tensor, draws: Any) -> Outputs:
        of, layers = draws
        widest = max(part.shape[-1] for part, _ in layers)
        at_a_time = max(1, _MAX_ACTIVATIONS // (x.shape[-2] * widest))
        parts = [
            network.through(x, [(w[some], b[some]) for w, b in layers], of[some])
            for some in torch.arange(len(of)).split(at_a_time)
        ]
        return torch.cat(parts), torch.arange(len(of)), None


def shares(n_draws: int, n_members: int) -> Tensor:
    """The member of each draw: neighbours share one, since a run of Sobol points is even."""
    return torch.arange(n_draws) * n_members // n_draws


def _with_constant(features: Tensor) -> Tensor:
    """Features / √width and a constant, in which the last layer is linear."""
    scaled = features / math.sqrt(features.shape[-1])
    return torch.cat([scaled, torch.ones_like(scaled[..., :1])], -1)
