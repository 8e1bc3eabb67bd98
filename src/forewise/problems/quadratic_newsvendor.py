"""The paper's constrained newsvendor with quadratic costs (NVQP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.base import CertaintyEquivalent, Problem
from forewise.problems.feasibility import Constraints
from forewise.problems.newsvendor import order_constraints, shortage_and_excess
from forewise.problems.programs import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.validation.arguments import (
    as_finite,
    as_quadratic,
    as_scalar,
    as_vector,
    require_nonnegative,
)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class QuadraticNewsvendor(Problem):
    """Orders of several items that share a budget, with quadratic costs.

        cost(z, y) = z'Q z + c'z + (y−z)₊'Q_s (y−z)₊ + c_s'(y−z)₊
                                 + (z−y)₊'Q_e (z−y)₊ + c_e'(z−y)₊
        subject to z ≥ 0 and price'z ≤ budget

    There is no factor ½, as in the paper. Vectors are diagonals; where all three are vectors, the
    items share the budget only, and a dual search is much faster than any program.

    With negative entries off the diagonal of `shortage_quadratic` or `excess_quadratic` the
    program (the paper's Appendix B) may count more shortage or excess than there is, where that is
    cheaper; it equals the cost above while 2 Q_s s + c_s and 2 Q_e e + c_e stay nonnegative.

    Parameters
    ----------
    quadratic, shortage_quadratic, excess_quadratic : float, array (n_items,) or (n_items, n_items)
        Q, Q_s and Q_e: a diagonal, or a symmetric positive semidefinite matrix.
    linear, shortage, excess : float or array (n_items,)
        c (any sign), c_s and c_e (at least 0).
    price, budget : array (n_items,) and float, optional
        Unit prices, and what may be spent. Both or neither.

    Examples
    --------
    Two items want 10 each, and the budget buys 12:

    >>> import forewise as fw
    >>> problem = fw.QuadraticNewsvendor(
    ...     quadratic=0.0,
    ...     linear=0.0,
    ...     shortage_quadratic=1.0,
    ...     shortage=4.0,
    ...     excess_quadratic=1.0,
    ...     excess=1.0,
    ...     price=[1.0, 1.0],
    ...     budget=12.0,
    ... )
    >>> fw.solve(problem, fw.Scenarios([[[10.0, 10.0]]])).decision.round(decimals=6)
    tensor([[6., 6.]], dtype=torch.float64)
    """

    quadratic: torch.Tensor
    linear: torch.Tensor
    shortage_quadratic: torch.Tensor
    shortage: torch.Tensor
    excess_quadratic: torch.Tensor
    excess: torch.Tensor
    price: torch.Tensor | None
    budget: torch.Tensor | None
    n_items: int

    def __init__(
        self,
        quadratic: Any,
        linear: Any,
        shortage_quadratic: Any,
        shortage: Any,
        excess_quadratic: Any,
        excess: Any,
        price: Any = None,
        budget: Any = None,
    ) -> None:
        if (price is None) != (budget is None):
            raise InvalidInputError("price and budget must be given together, but one is missing")
        arguments = {
            "quadratic": quadratic, "linear": linear, "shortage_quadratic": shortage_quadratic,
            "shortage": shortage, "excess_quadratic": excess_quadratic, "excess": excess,
        } | ({} if price is None else {"price": price})  # fmt: skip
        terms = {name: as_finite(name, value) for name, value in arguments.items()}
        # The number of items is that of the longest argument; scalars fit any number.
        n = max((term.shape[-1] for term in terms.values() if term.ndim), default=1)
        fields: dict[str, Any] = {"n_items": n, "price": None, "budget": None}
        for name, term in terms.items():
            as_term = as_quadratic if name.endswith("quadratic") else as_vector
            fields[name] = as_term(name, term, n)
        require_nonnegative("shortage", fields["shortage"])
        require_nonnegative("excess", fields["excess"])
        if (fields["shortage"] + fields["excess"] <= 0).any() and not _all_curved(fields):
            raise InvalidInputError(
                "shortage + excess must be positive for every item whose costs are not quadratic, "
                "but is 0"
            )
        if budget is not None:
            fields["budget"] = as_scalar("budget", budget)
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_outcomes(self) -> int:
        return self.n_items

    def n_decisions(self, n_outcomes: int) -> int:
        return n_outcomes

    @property
    def is_separable(self) -> bool:
        """Whether the items share the budget only."""
        terms = (self.quadratic, self.shortage_quadratic, self.excess_quadratic)
        return all(term.ndim == 1 for term in terms)

    def certainty_equivalent(self) -> CertaintyEquivalent | None:
        """The mean, where neither shortage nor excess costs anything."""
        terms = (self.shortage_quadratic, self.shortage, self.excess_quadratic, self.excess)
        if any(bool((term != 0).any()) for term in terms):
            return None
        return CertaintyEquivalent(
            "mean", "neither shortage nor excess costs anything, so that demand does not matter"
        )

    def constraints(self, n_decisions: int) -> Constraints:
        """No negative orders, and the budget."""
        if self.price is None or self.budget is None:
            return order_constraints(n_decisions)
        return order_constraints(n_decisions, ("budget", self.price, self.budget))

    def _cost(self, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        short, over = (outcome - decision).clamp_min(0), (decision - outcome).clamp_min(0)
        return (
            _quadratic_and_linear(decision, self.quadratic, self.linear)
            + _quadratic_and_linear(short, self.shortage_quadratic, self.shortage)
            + _quadratic_and_linear(over, self.excess_quadratic, self.excess)
        )

    def _program(self, scenarios: Scenarios) -> ScenarioProgram:
        device = scenarios.values.device
        n = self.n_items
        eye = torch.eye(n, dtype=self.linear.dtype, device=device)
        rows = {}
        if self.price is not None and self.budget is not None:
            price, budget = self.price.to(device), self.budget.to(device)
            rows = {"G": price[None, None], "h": budget[None, None]}
        halves = [_as_matrix(self.shortage_quadratic), _as_matrix(self.excess_quadratic)]
        return ScenarioProgram(
            weights=scenarios.weights,
            P=2 * _as_matrix(self.quadratic).to(device)[None],
            q=self.linear.to(device)[None],
            lower=eye.new_zeros(1, n),
            D=2 * torch.block_diag(*halves).to(device)[None, None],
            d=torch.cat([self.shortage, self.excess]).to(device)[None, None],
            **rows,
            **shortage_and_excess(scenarios.values, eye),
        )


def _all_curved(fields: dict[str, Any]) -> bool:
    diagonals = [
        term if term.ndim == 1 else term.diagonal()
        for term in (fields[f"{part}quadratic"] for part in ("", "shortage_", "excess_"))
    ]
    flat = fields["shortage"] + fields["excess"] <= 0
    return bool((diagonals[0] + torch.minimum(diagonals[1], diagonals[2]))[flat].gt(0).all())


def _as_matrix(term: torch.Tensor) -> torch.Tensor:
    return torch.diag(term) if term.ndim == 1 else term


def _quadratic_and_linear(
    amount: torch.Tensor, quadratic: torch.Tensor, linear: torch.Tensor
) -> torch.Tensor:
    """amount'Q amount + c'amount of each context."""
    quadratic, linear = quadratic.to(amount), linear.to(amount)
    curved = amount * quadratic if quadratic.ndim == 1 else amount @ quadratic
    return (amount * (curved + linear)).sum(-1)
