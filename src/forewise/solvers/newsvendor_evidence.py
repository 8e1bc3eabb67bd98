"""The evidence for a newsvendor's decision: its recourse, its multipliers, its residuals.

The closed forms find the order alone. The rest follows from it: what is short and over in each
scenario, and multipliers of the rows of the problem's program in the order in which
`problems.newsvendor.shortage_and_excess` lists them. Residuals are those of the same optimality
conditions, with the recourse already eliminated, recomputed from the demands and costs.

May import: problems, and its siblings `optimality`, `solution`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from forewise.problems.quadratic_newsvendor import QuadraticNewsvendor
from forewise.solvers.interior_point.optimality import ACCEPTED, largest
from forewise.solvers.solution import Duals, Solution, Status


class ItemCosts(NamedTuple):
    """Costs of independent items, each ``(n_items,)``; no factor ½."""

    quadratic: torch.Tensor
    linear: torch.Tensor
    shortage_quadratic: torch.Tensor
    shortage: torch.Tensor
    excess_quadratic: torch.Tensor
    excess: torch.Tensor

    @classmethod
    def of(cls, problem: QuadraticNewsvendor, device: torch.device) -> ItemCosts:
        """The costs of a separable quadratic newsvendor."""
        return cls(*(getattr(problem, name).to(device) for name in cls._fields))


def newsvendor_solution(
    costs: ItemCosts,
    demand: torch.Tensor,
    weights: torch.Tensor,
    decision: torch.Tensor,
    price: torch.Tensor | None = None,
    budget: torch.Tensor | None = None,
    multiplier: torch.Tensor | None = None,
) -> Solution:
    """Make a `Solution` of an order ``(B, n)`` and, if there is a budget, its multiplier."""
    q, c, q_s, c_s, q_e, c_e = costs
    valid = demand.detach().isfinite().flatten(1).all(1)
    if not bool(valid.all()):
        # No gradient may flow where the data are bad, and NaN times zero is NaN.
        demand = torch.where(valid[:, None, None], demand, 0.0)
        decision = torch.where(valid[:, None], decision, 0.0)
        multiplier = None if multiplier is None else torch.where(valid[:, None], multiplier, 0.0)
    weight = weights.unsqueeze(-1)
    difference = demand - decision.unsqueeze(1)
    short, over = difference.clamp_min(0), (-difference).clamp_min(0)
    shadow = multiplier * price if multiplier is not None and price is not None else 0.0
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
    duals = Duals(
        inequality=bound_dual
        if multiplier is None or price is None
        else torch.cat([bound_dual, multiplier], dim=1),
        equality=demand.new_zeros(len(demand), 0),
        scenario_inequality=torch.cat(
            [
                short_dual,
                over_dual,
                weight * (2 * q_s * short + c_s) - short_dual,
                weight * (2 * q_e * over + c_e) - over_dual,
            ],
            dim=-1,
        ),
        scenario_equality=demand.new_zeros(*demand.shape[:2], 0),
    )
    cost = (decision * (q * decision + c)).sum(-1)
    scenario_cost = short * (q_s * short + c_s) + over * (q_e * over + c_e)
    objective = cost + (weight * scenario_cost).sum((1, 2))
    primal, dual, gap = _residuals(
        costs, demand, decision, slope, objective, price, budget, multiplier
    )
    worst = torch.maximum(torch.maximum(primal, dual), gap)
    optimal = valid & (worst <= ACCEPTED) & objective.detach().isfinite()
    status = tuple(
        Status.INVALID if not ok else Status.OPTIMAL if good else Status.INACCURATE
        for ok, good in zip(valid.tolist(), optimal.tolist(), strict=True)
    )
    return Solution(
        decision=_only(optimal, decision),
        recourse=_only(optimal, torch.cat([short, over], dim=-1)),
        objective=_only(optimal, objective),
        duals=Duals(*(_only(optimal, getattr(duals, name)) for name in duals.__match_args__)),
        status=status,
        primal_residual=_only(valid, primal),
        dual_residual=_only(valid, dual),
        gap=_only(valid, gap),
        iterations=torch.zeros(len(demand), dtype=torch.long, device=demand.device),
    )


@torch.no_grad()
def _residuals(
    costs: ItemCosts,
    demand: torch.Tensor,
    decision: torch.Tensor,
    slope: torch.Tensor,
    objective: torch.Tensor,
    price: torch.Tensor | None,
    budget: torch.Tensor | None,
    multiplier: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Relative primal residual, dual residual and gap; `slope` is that of z without its bound."""
    tiny = torch.finfo(demand.dtype).tiny
    size = torch.maximum(largest(demand), largest(decision))
    cost_size = largest(torch.stack(list(costs)[1::2]).flatten()[None])
    curvature = torch.stack(list(costs)[::2]).amax()
    cost_size = torch.maximum(cost_size, 2 * curvature * size)
    primal, unspent = largest((-decision).clamp_min(0)), torch.zeros_like(size)
    complementarity = (slope.clamp_min(0) * decision).sum(-1).abs()
    if price is not None and budget is not None and multiplier is not None:
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
    dual = largest(slope.clamp_max(0))
    scale = torch.maximum(objective.abs(), 0.1 * cost_size * size)
    gap = torch.maximum(complementarity / scale.clamp_min(tiny), unspent)
    return primal / size.clamp_min(tiny), dual / cost_size, gap


def _only(kept: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The values of some contexts; NaN, without a gradient, in the others' place."""
    if bool(kept.all()):
        return values
    return torch.where(kept.reshape(-1, *(1,) * (values.ndim - 1)), values, torch.nan)
