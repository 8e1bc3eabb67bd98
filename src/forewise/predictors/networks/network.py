"""The network of every network predictor: layers, a distribution of weights, and a head.

May import: its siblings `weights`, `heads`, `noise`.
"""

from __future__ import annotations

import torch
from torch import nn

from forewise.predictors.networks.heads import Head
from forewise.predictors.networks.noise import stratified_normals
from forewise.predictors.networks.weights import Layout, Weights

#: Activations that are held at a time when scenarios are drawn without gradients.
_ACTIVATIONS = 2**24


class Network(nn.Module):
    """Contexts to a distribution of outcomes, all in standardised units."""

    def __init__(self, layout: Layout, weights: Weights, head: Head) -> None:
        super().__init__()
        self.layout, self.weights, self.head = layout, weights, head

    def loss(self, x: torch.Tensor, y: torch.Tensor, n_draws: int, generator: torch.Generator
             ) -> torch.Tensor:  # fmt: skip
        """Negative log-likelihood per outcome, averaged over draws of the weights."""
        outputs = self.layout.forward(x, self.weights.draw(n_draws, generator))
        return self.head.negative_log_likelihood(outputs, y)

    def scenarios(
        self, x: torch.Tensor, n_scenarios: int, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Values (n_contexts, n_scenarios, n_outcomes) and weights, with gradients.

        Noise is drawn anew for every context, as training wants it.
        """
        outputs = self.layout.forward(x, self.weights.draw(n_scenarios, generator))
        noise = stratified_normals(n_scenarios, len(x), self.head.n_noises, generator)
        return self.head.scenarios(outputs, noise)

    @torch.no_grad()
    def common_scenarios(
        self, x: torch.Tensor, noise: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """Scenarios that count alike, from draws of the weights (at most n_scenarios, n_weights).

        All contexts have one noise (n_scenarios, 1, n_noises).
        """
        return self.head.equal_scenarios(self._outputs(x, weights), noise)

    @torch.no_grad()
    def moments(self, x: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of each draw's distribution, (n_draws, n_contexts, n_outcomes)."""
        return self.head.moments(self._outputs(x, weights))

    def _outputs(self, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Outputs of all draws, a few draws at a time to bound the memory of hidden layers."""
        at_a_time = max(1, _ACTIVATIONS // (len(x) * max(self.layout.sizes)))
        parts = [self.layout.forward_alike(x, part) for part in weights.split(at_a_time)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)
