"""The classical newsvendor: order before demand is seen, pay for what is short or left over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.base import CertaintyEquivalent, Problem
from forewise.problems.feasibility import Constraints, NamedRow
from forewise.problems.programs import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.validation.arguments import WORKING_DTYPE, as_vector, require_nonnegative


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Newsvendor(Problem):
    """Order quantities of independent items, with a price for shortage and for excess.

        cost(z, y) = Σ_i shortage_i (y_i − z_i)₊ + excess_i (z_i − y_i)₊,    z ≥ 0

    The decision is the quantile of each item's demand at the level shortage / (shortage + excess).

    Parameters
    ----------
    shortage, excess : float or array (n_items,)
        Cost of a unit too few and of a unit too many, at least 0 and not both 0. Two scalars
        serve any number of items.

    Examples
    --------
    A unit too few costs three times as much as one too many, so the order is the 0.75 quantile:

    >>> import forewise as fw
    >>> problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    >>> demand = fw.Scenarios([[[10.0], [20.0], [30.0], [40.0]]])
    >>> fw.solve(problem, demand).decision
    tensor([[30.]], dtype=torch.float64)
    >>> problem.cost([[30.0]], [[33.0]])
    tensor([9.], dtype=torch.float64)
    """

    shortage: torch.Tensor
    excess: torch.Tensor
    n_items: int | None

    def __init__(self, shortage: Any, excess: Any) -> None:
        shortage = require_nonnegative("shortage", as_vector("shortage", shortage))
        excess = require_nonnegative("excess", as_vector("excess", excess))
        lengths = sorted({len(shortage), len(excess)})
        if len(lengths) == 2 and lengths[0] != 1:
            raise InvalidInputError(
                f"shortage and excess must be for the same items, but have {len(shortage)} and "
                f"{len(excess)} entries"
            )
        if (shortage + excess <= 0).any():
            raise InvalidInputError(
                "shortage + excess must be positive for every item, but is 0: an item that "
                "costs nothing has no best order"
            )
        object.__setattr__(self, "shortage", shortage)
        object.__setattr__(self, "excess", excess)
        object.__setattr__(self, "n_items", None if lengths[-1] == 1 else lengths[-1])

    @property
    def n_outcomes(self) -> int | None:
        return self.n_items

    def n_decisions(self, n_outcomes: int) -> int:
        return n_outcomes

    @property
    def level(self) -> torch.Tensor:
        """Level of the optimal quantile, ``(n_items | 1,)``."""
        return self.shortage / (self.shortage + self.excess)

    def certainty_equivalent(self) -> CertaintyEquivalent | None:
        """The median, where a unit too few costs what a unit too many does."""
        if not bool((self.shortage == self.excess).all()):
            return None
        return CertaintyEquivalent(
            "median",
            "shortage and excess cost the same, so that the best order is the median of demand",
        )

    def constraints(self, n_decisions: int) -> Constraints:
        """No negative orders."""
        return order_constraints(n_decisions)

    def _cost(self, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        short, over = (outcome - decision).clamp_min(0), (decision - outcome).clamp_min(0)
        return (self.shortage.to(short) * short + self.excess.to(over) * over).sum(-1)

    def _program(self, scenarios: Scenarios) -> ScenarioProgram:
        demand = scenarios.values
        n = scenarios.n_outcomes
        costs = torch.cat([self.shortage.expand(n), self.excess.expand(n)]).to(demand.device)
        eye = torch.eye(n, dtype=costs.dtype, device=costs.device)
        return ScenarioProgram(
            weights=scenarios.weights,
            q=costs.new_zeros(1, n),
            lower=costs.new_zeros(1, n),
            d=costs[None, None],
            **shortage_and_excess(demand, eye),
        )


def order_constraints(n_items: int, *more: NamedRow) -> Constraints:
    """z ≥ 0, and more rows."""
    zero, eye = torch.zeros((), dtype=WORKING_DTYPE), torch.eye(n_items, dtype=WORKING_DTYPE)
    rows = [(f"lower bound of item {i}", -eye[i], zero) for i in range(n_items)]
    return Constraints.from_rows([f"item {i}" for i in range(n_items)], [*rows, *more])


def shortage_and_excess(demand: torch.Tensor, eye: torch.Tensor) -> dict[str, torch.Tensor]:
    """The scenario rows and bounds that make u_j = (shortage, excess) of the order z.

    y_j − z ≤ shortage_j,  z − y_j ≤ excess_j,  0 ≤ shortage_j,  0 ≤ excess_j.
    """
    n = len(eye)
    demand = demand.to(eye.dtype)
    return {
        "T": torch.cat([-eye, eye])[None, None],
        "W": -torch.eye(2 * n, dtype=eye.dtype, device=eye.device)[None, None],
        "r": torch.cat([-demand, demand], dim=-1),
        "recourse_lower": eye.new_zeros(1, 1, 2 * n),
    }
