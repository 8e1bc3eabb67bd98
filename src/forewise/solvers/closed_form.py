"""Exact solutions of the newsvendors, by sorting instead of iterating.

`WeightedQuantileSolver` solves the classical newsvendor, `DualSearchSolver` the quadratic one whose
items are linked by the budget alone. Both are plain torch, and differentiated as they stand: which
scenarios lie below the decision is found without gradients, and the decision is then a formula in
those scenarios.

What follows from an order is in `orders`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import pad

from forewise.problems.base import Problem
from forewise.problems.newsvendor import Newsvendor
from forewise.problems.quadratic_newsvendor import QuadraticNewsvendor
from forewise.scenarios import Scenarios
from forewise.solvers.base import Solver
from forewise.solvers.orders import Amounts, Budget, ItemCosts, order_solution
from forewise.solvers.solution import Solution
from forewise.validation.arguments import WORKING_DTYPE

_ROUNDING = 1e-12  # of the cumulated weight that must reach a quantile's level
_TRIED, _MAX_ROUNDS = 33, 12  # multipliers at once, and how often: enough to tell doubles apart
_UNUSED = 1e-10  # share of a binding budget that rounding may leave, or overdraw


@dataclass(frozen=True, repr=False)
class WeightedQuantileSolver(Solver):
    """The newsvendor's decision: each item's weighted quantile of demand, at least 0.

    Examples
    --------
    >>> import forewise as fw
    >>> demand = fw.Scenarios([[[10.0], [20.0], [30.0]]], weights=[[0.5, 0.3, 0.2]])
    >>> fw.solve(fw.Newsvendor(3.0, 1.0), demand, fw.solvers.WeightedQuantileSolver()).decision
    tensor([[20.]], dtype=torch.float64)
    """

    def unsupported_reason(self, problem: Problem) -> str | None:
        """Only a `Newsvendor` is solved by a quantile."""
        if isinstance(problem, Newsvendor):
            return None
        return f"a quantile solves Newsvendor only, not {type(problem).__name__}; use AutoSolver()"

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve every context."""
        assert isinstance(problem, Newsvendor)
        problem._check_width("scenarios", scenarios.n_outcomes)
        demand, n = scenarios.values.to(WORKING_DTYPE), scenarios.n_outcomes
        level, shortage, excess = (
            value.to(demand.device).expand(n)
            for value in (problem.level, problem.shortage, problem.excess)
        )
        with torch.no_grad():
            rank = _quantile_rank(demand, level, scenarios)
        decision = demand.gather(1, rank.unsqueeze(1)).squeeze(1).clamp_min(0)
        zero = demand.new_zeros(n)
        costs = ItemCosts(zero, zero, zero, shortage, zero, excess)
        return order_solution(costs, demand, scenarios.weights, decision)


def _quantile_rank(demand: torch.Tensor, level: torch.Tensor, scenarios: Scenarios) -> torch.Tensor:
    """Index of the scenario that is the quantile of each context and item, ``(B, n)``."""
    order = demand.argsort(dim=1)
    M = demand.shape[1]
    if scenarios.equally_weighted:
        position = (level * M - _ROUNDING * M).ceil().clamp(1, M).long() - 1
        position = position.expand(demand.shape[0], -1)
    else:
        weights = scenarios.weights.unsqueeze(-1).expand_as(demand)
        cumulated = weights.gather(1, order).cumsum(1)
        position = (cumulated < level - _ROUNDING).sum(1).clamp_max(M - 1)
    return order.gather(1, position.unsqueeze(1)).squeeze(1)


@dataclass(frozen=True, repr=False)
class DualSearchSolver(Solver):
    """The separable quadratic newsvendor: a search for the budget's multiplier.

    Given the multiplier, an item's best order is where its piecewise linear marginal cost
    crosses zero: one look-up among its sorted scenarios. The spending falls with the
    multiplier, piecewise linearly: many multipliers are tried at once, until the two that
    enclose the budget lie on one piece. It is exact, and as fast as sorting.

    Examples
    --------
    >>> import forewise as fw
    >>> problem = fw.datasets.nvqp_problem(budget=6000.0)
    >>> data = fw.datasets.nvqp(2, random_state=0)
    >>> scenarios = data.true_scenarios(50)
    >>> fast = fw.solve(problem, scenarios, fw.solvers.DualSearchSolver())
    >>> general = fw.solve(problem, scenarios, fw.InteriorPointSolver())
    >>> bool((fast.decision - general.decision).abs().max() < 1e-4)
    True
    """

    def unsupported_reason(self, problem: Problem) -> str | None:
        """Only separable quadratic newsvendors with strictly convex items."""
        if not isinstance(problem, QuadraticNewsvendor):
            return (
                f"the dual search solves QuadraticNewsvendor only, not {type(problem).__name__}; "
                "use AutoSolver()"
            )
        if not problem.is_separable:
            return "a quadratic cost has entries off its diagonal; use InteriorPointSolver()"
        least = torch.minimum(problem.shortage_quadratic, problem.excess_quadratic)
        if (problem.quadratic + least <= 0).any():
            return "an item has no quadratic cost, so its order may jump; use InteriorPointSolver()"
        if problem.price is not None and (problem.price < 0).any():
            return "a price is negative, so spending may rise with it; use InteriorPointSolver()"
        return None

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve every context."""
        assert isinstance(problem, QuadraticNewsvendor)
        problem._check_width("scenarios", scenarios.n_outcomes)
        demand, weights = scenarios.values.to(WORKING_DTYPE), scenarios.weights
        costs = ItemCosts.from_problem(problem, demand.device)
        price, budget, limit = problem.price, problem.budget, None
        if price is not None and budget is not None:
            price, budget = price.to(demand.device), budget.to(demand.device)
        with torch.no_grad():
            curves = _MarginalCosts.from_scenarios(costs, demand, scenarios)
            level = torch.zeros_like(curves.demand[..., :1])
            if price is not None and budget is not None:
                limit = Budget(price, budget, _search(curves, price, budget))
                level = -(limit.multiplier * price).unsqueeze(-1)
            found = curves.order_at(level)
        decision, limit = _differentiable(costs, demand, weights, found, limit)
        if limit is not None:
            last = curves.offset[..., 0] / torch.where(limit.price > 0, limit.price, torch.nan)
            decision = _using_up(limit, decision, last)
        return order_solution(costs, demand, weights, decision, limit)


class _Order(NamedTuple):
    """Orders, and what holds them where they are; all ``(B, n, levels)``."""

    amount: torch.Tensor
    free: torch.Tensor  # between two scenarios, held by the marginal cost alone
    place: torch.Tensor  # which piece of the marginal cost they are on


class _MarginalCosts(NamedTuple):
    """Each item's marginal cost as a function of the order, over sorted scenarios.

    With k scenarios below the order it is ``slope[k] z + offset[k]``, and it jumps up at every
    scenario by the cost of turning its shortage into excess.
    """

    demand: torch.Tensor  # sorted (B, n, M)
    slope: torch.Tensor  # (B | 1, n, M + 1)
    offset: torch.Tensor  # (B, n, M + 1)
    knots: torch.Tensor  # marginal cost just below and above every scenario (B, n, 2M)

    @classmethod
    def from_scenarios(
        cls, costs: ItemCosts, demand: torch.Tensor, scenarios: Scenarios
    ) -> _MarginalCosts:
        """Sort the scenarios and sum up their costs."""
        ordered, weights = _sort(demand, scenarios)
        below = Amounts(
            pad(weights.cumsum(-1), (1, 0)), pad((weights * ordered).cumsum(-1), (1, 0))
        )
        above = Amounts(*(part[..., -1:] - part for part in below))
        slope, offset = ItemCosts(*(term.unsqueeze(-1) for term in costs)).marginal(below, above)
        before = slope[..., :-1] * ordered + offset[..., :-1]
        after = slope[..., 1:] * ordered + offset[..., 1:]
        knots = torch.stack([before, after], dim=-1).flatten(-2)
        # Rounding must not unsort what is sorted by construction.
        return cls(ordered, slope, offset, knots.cummax(-1).values)

    def take(self, contexts: torch.Tensor) -> _MarginalCosts:
        """The curves of some contexts."""
        slope = self.slope if self.slope.shape[0] == 1 else self.slope[contexts]
        return _MarginalCosts(
            self.demand[contexts], slope, self.offset[contexts], self.knots[contexts]
        )

    def order_at(self, marginal: torch.Tensor) -> _Order:
        """The orders at which marginal costs reach some levels, ``(B, n, levels)``, at least 0."""
        place = torch.searchsorted(self.knots, marginal.contiguous())
        below = place // 2
        slope = self.slope.expand(len(marginal), -1, -1).gather(-1, below)
        at_scenario = self.demand.gather(-1, below.clamp_max(self.demand.shape[-1] - 1))
        free = place == 2 * below
        amount = torch.where(free, (marginal - self.offset.gather(-1, below)) / slope, at_scenario)
        return _Order(amount.clamp_min(0), free & (amount > 0), place)


def _sort(demand: torch.Tensor, scenarios: Scenarios) -> tuple[torch.Tensor, torch.Tensor]:
    """Scenarios sorted by demand, ``(B, n, M)``, and their weights ``(B | 1, n | 1, M)``.

    NumPy sorts several times faster than torch, and needs no permutation where all scenarios
    have the same weight.
    """
    values = np.ascontiguousarray(demand.detach().mT.cpu().numpy())
    if scenarios.equally_weighted:
        ordered = torch.from_numpy(np.sort(values, axis=-1)).to(demand.device)
        return ordered, scenarios.weights[:1, None, :]
    order = np.argsort(values, axis=-1)
    ordered = torch.from_numpy(np.take_along_axis(values, order, axis=-1)).to(demand.device)
    permutation = torch.from_numpy(order).to(demand.device)
    weights = scenarios.weights.detach().unsqueeze(1).expand_as(ordered)
    return ordered, weights.gather(-1, permutation)


def _search(curves: _MarginalCosts, price: torch.Tensor, budget: torch.Tensor) -> torch.Tensor:
    """The budget's multiplier of each context, ``(B, 1)``; 0 where the budget is not binding."""
    multiplier = curves.demand.new_zeros(curves.demand.shape[0], 1)
    unpriced = curves.order_at(torch.zeros_like(curves.demand[..., :1]))
    spent = (price * unpriced.amount.squeeze(-1)).sum(-1)
    # A NaN compares false: a context with bad data is not searched.
    binding = (spent > budget).nonzero().squeeze(1)
    if len(binding) == 0:
        return multiplier
    curves = curves.take(binding)
    column = price.unsqueeze(-1)
    # With this multiplier no priced item is ordered: its marginal cost at 0 is positive.
    at_zero = -curves.offset[..., 0] / torch.where(price > 0, price, torch.inf)
    low, high = multiplier[binding], at_zero.amax(-1, keepdim=True).clamp_min(0)
    part = torch.linspace(0, 1, _TRIED, dtype=low.dtype, device=low.device)
    for _ in range(_MAX_ROUNDS):
        tried = low + (high - low) * part
        order = curves.order_at(-column * tried.unsqueeze(1))
        excess = (column * order.amount).sum(1) - budget
        last_over = ((excess > 0).sum(-1, keepdim=True) - 1).clamp(0, _TRIED - 2)
        ends = torch.cat([last_over, last_over + 1], dim=-1)
        low, high = tried.gather(-1, ends).split(1, dim=-1)
        over, under = excess.gather(-1, ends).split(1, dim=-1)
        places = order.place.gather(-1, ends.unsqueeze(1).expand(-1, len(price), -1))
        if bool((places[..., 0] == places[..., 1]).all()):
            break
    # On one piece spending is linear in the multiplier.
    drop = over - under
    share = torch.where(drop > 0, over / torch.where(drop > 0, drop, 1.0), 0.0)
    multiplier[binding] = low + (high - low) * share
    return multiplier


def _using_up(limit: Budget, decision: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """Orders that use up a budget that binds, where the multiplier has too few digits for it.

    Beside demands that are very much larger, the whole budget is rounding in the multiplier. What
    is left goes to the item that pays the highest price for it (the least of `last`, its marginal
    cost at 0 per price); what is too much is taken from all in proportion.
    """
    price, budget, multiplier = limit
    with torch.no_grad():
        spent = (price * decision).sum(-1)
        left = budget - spent
        lost = (multiplier.squeeze(1) > 0) & (left.abs() > _UNUSED * budget) & (budget > 0)
        if not bool(lost.any()):
            return decision
        dearest = last.nan_to_num(torch.inf).argmin(-1, keepdim=True)
        more = torch.zeros_like(decision).scatter(
            1, dearest, left.unsqueeze(1) / price[dearest.squeeze(1)].unsqueeze(1)
        )
        less = decision * (left / torch.where(spent > 0, spent, 1.0)).unsqueeze(1)
        step = torch.where((left > 0).unsqueeze(1), more, less)
        step = torch.where(lost.unsqueeze(1), step, 0.0)
    return decision + step


def _differentiable(
    costs: ItemCosts,
    demand: torch.Tensor,
    weights: torch.Tensor,
    found: _Order,
    limit: Budget | None,
) -> tuple[torch.Tensor, Budget | None]:
    """The order that was found, as a formula in the scenarios, weights and costs.

    A free order is where its marginal cost meets the multiplier, an order on a scenario is that
    scenario, and the multiplier is what makes the free orders use up the budget.
    """
    order = found.amount.squeeze(-1)
    amount = order.unsqueeze(1)
    # An order that falls on a scenario by chance is held by it as well.
    is_free = found.free.squeeze(-1) & (demand != amount).all(1)
    weight = weights.unsqueeze(-1)
    sides = [side.to(demand.dtype) for side in (demand < amount, demand > amount)]
    shares = [(weight * side).sum(1) for side in sides]
    weighted = weight * demand
    values = [(weighted * side).sum(1) for side in sides]
    below, above = (Amounts(*pair) for pair in zip(shares, values, strict=True))
    slope, offset = costs.marginal(below, above)
    nearest = (demand.detach() - amount).abs().argmin(1, keepdim=True)
    on_scenario = demand.gather(1, nearest).squeeze(1)
    held = torch.where(order > 0, on_scenario, 0.0)
    if limit is None:
        return torch.where(is_free, -offset / slope, held), None
    price, budget, multiplier = limit
    free = is_free.to(demand.dtype)
    spent = (price * torch.where(is_free, -offset / slope, held)).sum(-1, keepdim=True)
    fall = (free * price.square() / slope).sum(-1, keepdim=True)
    # With no free item the multiplier moves nothing; keep the one that was found.
    moves = (multiplier > 0) & (fall > 0)
    multiplier = torch.where(moves, (spent - budget) / torch.where(moves, fall, 1.0), multiplier)
    order = torch.where(is_free, -(offset + multiplier * price) / slope, held)
    return order, Budget(price, budget, multiplier)
