"""The solution that an order is, where items are linked by a budget at most.

Recourse and multipliers (in the order of `problems.newsvendor.shortage_and_excess`) follow from the
order, and residuals are recomputed from the demands and costs, with the recourse eliminated.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from forewise.problems.quadratic_newsvendor import QuadraticNewsvendor
from forewise.solvers.interior_point.verification import ACCEPTED, Residuals
from forewise.solvers.solution import Duals, Solution, Status, only


class Amounts(NamedTuple):
    """Weights, and weighted demand, of the scenarios on one side of an order."""

    share: torch.Tensor
    value: torch.Tensor


class ItemCosts(NamedTuple):
    """Costs of independent items, each ``(n_items,)``; no factor ½."""

    quadratic: torch.Tensor
    linear: torch.Tensor
    shortage_quadratic: torch.Tensor
    shortage: torch.Tensor
    excess_quadratic: torch.Tensor
    excess: torch.Tensor

    @classmethod
    def from_problem(cls, problem: QuadraticNewsvendor, device: torch.device) -> ItemCosts:
        """The costs of a separable quadratic newsvendor."""
        return cls(*(getattr(problem, name).to(device) for name in cls._fields))

    def marginal(self, below: Amounts, above: Amounts) -> tuple[torch.Tensor, torch.Tensor]:
        """Slope and offset of the marginal cost of an order between two scenarios."""
        q, c, q_s, c_s, q_e, c_e = self
        slope = 2 * (q + q_e * below.share + q_s * above.share)
        fixed = c + c_e * below.share - c_s * above.share
        return slope, fixed - 2 * (q_e * below.value + q_s * above.value)


class Budget(NamedTuple):
    """price'z ≤ amount, and its multiplier."""

    price: torch.Tensor  # (n_items,)
    amount: torch.Tensor
    multiplier: torch.Tensor  # (B, 1)


def order_solution(
    costs: ItemCosts,
    demand: torch.Tensor,
    weights: torch.Tensor,
    decision: torch.Tensor,
    limit: Budget | None = None,
) -> Solution:
    """Make a `Solution` of an order ``(B, n)`` and, if there is a budget, its multiplier."""
    q, c, q_s, c_s, q_e, c_e = costs
    valid = demand.detach().isfinite().flatten(1).all(1)
    if not bool(valid.all()):
        # No gradient may flow where the data are bad, and NaN times zero is NaN.
        demand = torch.where(valid[:, None, None], demand, 0.0)
        decision = torch.where(valid[:, None], decision, 0.0)
        if limit is not None:
            limit = limit._replace(multiplier=torch.where(valid[:, None], limit.multiplier, 0.0))
    weight = weights.unsqueeze(-1)
    difference = demand - decision.unsqueeze(1)
    short, over = difference.clamp_min(0), (-difference).clamp_min(0)
    shadow = 0.0 if limit is None else limit.multiplier * limit.price
    own = 2 * q * decision + c + shadow

    # Marginal costs: those of scenarios off the order, then the share that scenarios on it bear.
    off_short, off_over = (difference > 0).to(demand.dtype), (difference < 0).to(demand.dtype)
    on = weight * (1 - off_short - off_over)
    short_dual = weight * off_short * (2 * q_s * short + c_s)
    over_dual = weight * off_over * (2 * q_e * over + c_e)
    slope = own + (over_dual - short_dual).sum(1)
    on_total = on.sum(1)
    jump = (on_total * (c_s + c_e)).detach()
    share = torch.where(jump > 0, (on_total * c_s - slope) / torch.where(jump > 0, jump, 1.0), 0.0)
    share = share.clamp(0, 1).unsqueeze(1)
    short_dual = short_dual + on * (1 - share) * c_s
    over_dual = over_dual + on * share * c_e
    slope = own + (over_dual - short_dual).sum(1)
    bound_dual = slope.clamp_min(0)
    short_bound = weight * (2 * q_s * short + c_s) - short_dual
    over_bound = weight * (2 * q_e * over + c_e) - over_dual
    duals = {
        "inequality": bound_dual[:, :0] if limit is None else limit.multiplier,
        "equality": bound_dual[:, :0],
        "scenario_inequality": torch.cat([short_dual, over_dual], dim=-1),
        "scenario_equality": short_dual[..., :0],
        "lower": bound_dual,
        "recourse_lower": torch.cat([short_bound, over_bound], dim=-1),
    }
    cost = (decision * (q * decision + c)).sum(-1)
    scenario_cost = short * (q_s * short + c_s) + over * (q_e * over + c_e)
    objective = cost + (weight * scenario_cost).sum((1, 2))
    found = _residuals(costs, demand, decision, slope, objective, limit)
    optimal = valid & (found.worst <= ACCEPTED) & objective.detach().isfinite()
    if bool(optimal.all()):
        status = (Status.OPTIMAL,) * len(optimal)
    else:
        status = tuple(
            Status.INVALID if not ok else Status.OPTIMAL if good else Status.INACCURATE
            for ok, good in zip(valid.tolist(), optimal.tolist(), strict=True)
        )
    return Solution(
        decision=only(optimal, decision),
        recourse=only(optimal, torch.cat([short, over], dim=-1)),
        objective=only(optimal, objective),
        duals=Duals(**{name: only(optimal, part) for name, part in duals.items()}),
        status=status,
        primal_residual=only(valid, found.primal),
        dual_residual=only(valid, found.dual),
        gap=only(valid, found.gap),
        iterations=torch.zeros(len(demand), dtype=torch.long, device=demand.device),
    )


@torch.no_grad()
def _residuals(
    costs: ItemCosts,
    demand: torch.Tensor,
    decision: torch.Tensor,
    slope: torch.Tensor,
    objective: torch.Tensor,
    limit: Budget | None,
) -> Residuals:
    """Relative residuals; `slope` is that of z without its bound."""
    tiny = torch.finfo(demand.dtype).tiny
    size = torch.maximum(_largest(demand), _largest(decision))
    cost_size = _largest(torch.stack(list(costs)[1::2]).flatten()[None])
    curvature = torch.stack(list(costs)[::2]).amax()
    cost_size = torch.maximum(cost_size, 2 * curvature * size)
    primal, unspent = _largest((-decision).clamp_min(0)), torch.zeros_like(size)
    complementarity = (slope.clamp_min(0) * decision).sum(-1).abs()
    if limit is not None:
        price, budget, multiplier = limit
        left = budget - (price * decision).sum(-1)
        norm = price.abs().amax().clamp_min(tiny)
        size = torch.maximum(size, budget.abs() / norm)
        primal = torch.maximum(primal, (-left).clamp_min(0) / norm)
        complementarity = complementarity + (multiplier.squeeze(1) * left).abs()
        # A budget far below the demand is nothing beside the cost: it is either used up or free.
        spent = torch.maximum(budget.abs(), (price * decision).abs().sum(-1)).clamp_min(tiny)
        pressing = multiplier.squeeze(1) * norm / cost_size
        unspent = torch.minimum(pressing, left.abs() / spent)
    # What is left of the slope below zero no bound can hold.
    dual = _largest(slope.clamp_max(0))
    scale = torch.maximum(objective.abs(), 0.1 * cost_size * size)
    gap = torch.maximum(complementarity / scale.clamp_min(tiny), unspent)
    return Residuals(primal / size.clamp_min(tiny), dual / cost_size, gap)


def _largest(values: torch.Tensor) -> torch.Tensor:
    """Largest absolute value of each context, ``(B | 1,)``; 0 where there is none."""
    flat = values.detach().flatten(1)
    return flat.abs().amax(1) if flat.shape[1] else flat.new_zeros(flat.shape[0])
