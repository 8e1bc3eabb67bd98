"""Scenarios: draws of the outcome, optionally weighted, for a batch of contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from forewise.display import ROWS, counted, html_table
from forewise.exceptions import InvalidInputError
from forewise.validation.arguments import WORKING_DTYPE, as_finite, as_tensor, require_nonnegative


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Possible outcomes of each context, with the weight of each.

    A value that is NaN or infinite marks its own context as ``Status.INVALID`` when the scenarios
    are solved, and no other.

    Parameters
    ----------
    values : array or tensor (n_contexts, n_scenarios, n_outcomes)
        The draws. Floating-point precision, device and gradients are kept.
    weights : array or tensor (n_contexts, n_scenarios) or (n_scenarios,), optional
        Nonnegative, not all zero in any context; they are scaled to sum to one. A scenario of
        weight zero cannot happen: it neither costs nor constrains. Equal weights by default.

    Examples
    --------
    >>> import forewise as fw
    >>> scenarios = fw.Scenarios([[[3.0], [5.0]]], weights=[[1.0, 3.0]])
    >>> scenarios.weights
    tensor([[0.2500, 0.7500]], dtype=torch.float64)
    """

    values: torch.Tensor
    weights: torch.Tensor
    equally_weighted: bool

    def __init__(self, values: Any, weights: Any = None) -> None:
        values = as_tensor("values", values)
        if values.ndim != 3 or 0 in values.shape:
            raise InvalidInputError(
                "values must have shape (n_contexts, n_scenarios, n_outcomes), all at least 1, "
                f"but has shape {tuple(values.shape)}"
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", _normalised_weights(weights, values))
        object.__setattr__(self, "equally_weighted", weights is None)

    @property
    def n_contexts(self) -> int:
        """Number of contexts."""
        return self.values.shape[0]

    @property
    def n_scenarios(self) -> int:
        """Number of scenarios of each context."""
        return self.values.shape[1]

    @property
    def n_outcomes(self) -> int:
        """Number of uncertain quantities."""
        return self.values.shape[2]

    def __getitem__(self, contexts: slice | torch.Tensor) -> Scenarios:
        """The scenarios of some contexts, weights as they are."""
        part = object.__new__(Scenarios)
        object.__setattr__(part, "values", self.values[contexts])
        object.__setattr__(part, "weights", self.weights[contexts])
        object.__setattr__(part, "equally_weighted", self.equally_weighted)
        return part

    @property
    def _weighting(self) -> str:
        return "equal weights" if self.equally_weighted else "weighted"

    def __repr__(self) -> str:
        return (
            f"Scenarios(n_contexts={self.n_contexts}, n_scenarios={self.n_scenarios}, "
            f"n_outcomes={self.n_outcomes}, {self._weighting}, {self.values.dtype})"
        )

    def _repr_html_(self) -> str:
        contexts = -(-ROWS // self.n_outcomes)  # as many as a table has rows for
        values, weights = self.values[:contexts].detach(), self.weights[:contexts].detach()
        means = (weights.to(values)[..., None] * values).sum(1)
        figures = torch.stack([means, values.amin(1), values.amax(1)], dim=-1)
        rows = [[*place, *figures[place].tolist()] for place in np.ndindex(*means.shape)]
        counts = [counted(self.n_contexts, "context"), counted(self.n_scenarios, "scenario")]
        counts += [counted(self.n_outcomes, "outcome"), self._weighting]
        columns = ["context", "outcome", "mean", "smallest", "largest"]
        return html_table(f"Scenarios: {', '.join(counts)}", columns, rows[:ROWS])


def _normalised_weights(weights: Any, values: torch.Tensor) -> torch.Tensor:
    shape = values.shape[:2]
    if weights is None:
        return torch.full((), 1 / shape[1], dtype=WORKING_DTYPE, device=values.device).expand(shape)
    weights = as_finite("weights", weights).to(values.device)
    if weights.shape not in (shape, shape[1:]):
        raise InvalidInputError(
            f"weights must have shape (n_contexts, n_scenarios) = {tuple(shape)} or "
            f"(n_scenarios,) = ({shape[1]},), but has shape {tuple(weights.shape)}"
        )
    require_nonnegative("weights", weights)
    total = weights.sum(-1, keepdim=True)
    if not total.isfinite().all():  # weights whose sum no float64 can hold
        weights = weights / weights.amax(-1, keepdim=True).clamp_min(1.0)
        total = weights.sum(-1, keepdim=True)
    if (total == 0).any():
        raise InvalidInputError(
            "weights must not all be zero, but they are in "
            + ("the only row" if weights.ndim == 1 else f"{int((total == 0).sum())} context(s)")
        )
    # Weights that were scaled before stay what they are, to the bit.
    total = torch.where((total - 1).abs() <= 1e-12, 1.0, total)
    return (weights / total).expand(shape)
