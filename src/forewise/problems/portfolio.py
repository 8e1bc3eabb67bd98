"""The paper's portfolio problem (POP): the least expected loss for a required return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.base import Problem
from forewise.problems.feasibility import Constraints
from forewise.problems.programs import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_scalar, as_vector


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Portfolio(Problem):
    """Holdings with the least expected loss beyond zero.

        cost(z, y) = (−y'z)₊    subject to    expected_return'z ≥ minimum_return,
                                lower ≤ z ≤ upper,  and  Σ z = budget if there is one

    Where several portfolios have the same least loss (often 0), the interior-point solver returns
    their analytic centre, a simplex method a corner. Where holding nothing is allowed and there is
    no budget, a portfolio can be scaled down without loss, so that decisions return exactly
    `minimum_return`.

    Parameters
    ----------
    expected_return : array (n_assets,)
    minimum_return : float
    budget : float, optional
        What the holdings sum to. By default they sum to whatever the return asks for.
    upper : float or array (n_assets,), optional
        Largest holding of each asset; none by default.
    lower : float or array (n_assets,)
        Smallest holding of each asset; negative for short sales.

    Examples
    --------
    The first asset may lose, the second may not:

    >>> import forewise as fw
    >>> problem = fw.Portfolio(expected_return=[1.0, 0.5], minimum_return=1.0)
    >>> scenarios = fw.Scenarios([[[3.0, 0.5], [-1.0, 0.5]]])
    >>> solution = fw.solve(problem, scenarios)
    >>> bool((problem.cost(solution.decision, [[-1.0, 0.5]]) < 1e-6).all())
    True
    """

    expected_return: torch.Tensor
    minimum_return: torch.Tensor
    budget: torch.Tensor | None
    upper: torch.Tensor | None
    lower: torch.Tensor

    def __init__(
        self,
        expected_return: Any,
        minimum_return: Any,
        budget: Any = None,
        upper: Any = None,
        lower: Any = 0.0,
    ) -> None:
        expected = as_vector("expected_return", expected_return)
        n = len(expected)
        low = as_vector("lower", lower, n)
        high = None if upper is None else as_vector("upper", upper, n)
        if high is not None and (low > high).any():
            asset = int((low > high).nonzero()[0])
            raise InvalidInputError(
                f"lower must not exceed upper, but for asset {asset} lower is "
                f"{low[asset].item():g} and upper {high[asset].item():g}"
            )
        object.__setattr__(self, "expected_return", expected)
        object.__setattr__(self, "minimum_return", as_scalar("minimum_return", minimum_return))
        object.__setattr__(self, "budget", None if budget is None else as_scalar("budget", budget))
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "lower", low)

    @property
    def n_outcomes(self) -> int:
        return len(self.expected_return)

    def n_decisions(self, n_outcomes: int) -> int:
        return n_outcomes

    @property
    def _shrinks(self) -> bool:
        """Whether a portfolio that returns too much can be scaled down to the minimum return."""
        may_hold_nothing = bool((self.lower <= 0).all()) and (
            self.upper is None or bool((self.upper >= 0).all())
        )
        return self.budget is None and bool(self.minimum_return > 0) and may_hold_nothing

    def constraints(self, n_decisions: int) -> Constraints:
        """Bounds, the minimum return as an inequality, and the budget."""
        eye = torch.eye(n_decisions, dtype=self.lower.dtype)
        rows = [(f"lower bound of asset {i}", -eye[i], -self.lower[i]) for i in range(n_decisions)]
        if self.upper is not None:
            rows += [
                (f"upper bound of asset {i}", eye[i], self.upper[i]) for i in range(n_decisions)
            ]
        rows.append(("minimum return", -self.expected_return, -self.minimum_return))
        budget = []
        if self.budget is not None:
            budget = [("budget", torch.ones_like(self.lower), self.budget)]
        return Constraints.from_rows([f"asset {i}" for i in range(n_decisions)], rows, budget)

    def _cost(self, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        return (-(outcome * decision).sum(-1)).clamp_min(0)

    def _program(self, scenarios: Scenarios) -> ScenarioProgram:
        returns = scenarios.values.to(self.lower.dtype)
        device = returns.device
        n = self.n_outcomes
        expected = self.expected_return.to(device)[None, None]
        minimum = self.minimum_return.to(device)[None, None]
        if self._shrinks:
            # As an inequality it would let portfolios that cannot lose be as large as one likes,
            # and such optima have no centre.
            rows = {"E": expected, "e": minimum}
        else:
            rows = {"G": -expected, "h": -minimum}
        if self.upper is not None:
            rows["upper"] = self.upper.to(device)[None]
        if self.budget is not None:
            rows |= {"E": returns.new_ones(1, 1, n), "e": self.budget.to(device)[None, None]}
        # u_j is the loss of scenario j: −y_j'z ≤ u_j and 0 ≤ u_j.
        return ScenarioProgram(
            weights=scenarios.weights,
            q=returns.new_zeros(1, n),
            lower=self.lower.to(device)[None],
            d=returns.new_ones(1, 1, 1),
            T=-returns[:, :, None, :],
            W=-returns.new_ones(1, 1, 1, 1),
            r=returns.new_zeros(1, 1, 1),
            recourse_lower=returns.new_zeros(1, 1, 1),
            **rows,
        )
