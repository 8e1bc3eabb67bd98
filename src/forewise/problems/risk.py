"""Risk measures of a cost, and the program that minimises one.

All are one family: (1 − share) · mean + share · CVaR at a level; level 1 is the worst case. With
C_j(u) = ½ u'D_j u + d_j'u the cost of scenario j and f(z) that of the first stage, the program is

    min   f(z) + (1 − share) Σ_j w_j C_j(u_j) + share · ( t + Σ_j w_j v_j / (1 − level) )
    s.t.  C_j(u_j) − t ≤ v_j,  0 ≤ v_j,  and the program's own rows

t, the threshold of the tail, is the last first-stage variable; v_j is the last recourse variable
(absent at level 1). A quadratic C_j is replaced by its tangent at a `Centre`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.programs import ScenarioProgram, apply, joined
from forewise.validation.arguments import as_scalar, as_tensor


class Risk(ABC):
    """A risk measure of costs; a value, passed to `Problem.with_risk`.

    `level` is the share of outcomes below the tail; at 1 the tail is the worst case.

    Examples
    --------
    Pass one to `with_risk`; here the order hedges against the day with a demand of 100:

    >>> import forewise as fw
    >>> demand = fw.Scenarios([[[0.0], [10.0], [20.0], [100.0]]])
    >>> for risk in (fw.Expectation(), fw.MeanCVaR(0.5, 0.5), fw.WorstCase()):
    ...     problem = fw.Newsvendor(shortage=3.0, excess=1.0).with_risk(risk)
    ...     print(risk, fw.solve(problem, demand).decision.round(decimals=4).item())
    Expectation() 20.0
    MeanCVaR(weight=0.5, level=0.5) 77.5
    WorstCase() 75.0
    """

    level: float

    @property
    @abstractmethod
    def share(self) -> float:
        """The weight of the tail beside the mean, between 0 and 1."""

    def __call__(self, costs: Any, weights: Any = None) -> torch.Tensor:
        """The risk of costs ``(..., n)``, equally likely or with weights that add up to one."""
        costs = as_tensor("costs", costs)
        if costs.ndim == 0 or costs.shape[-1] == 0:
            raise InvalidInputError("costs must be at least one number, but there is none")
        if weights is None:
            weights = torch.full_like(costs, 1 / costs.shape[-1])
        else:
            weights = as_tensor("weights", weights).to(costs).expand_as(costs)
        mean = (weights * costs).sum(-1)
        if self.share == 0:
            return mean
        return (1 - self.share) * mean + self.share * self._tail_mean(costs, weights)

    def _tail_mean(self, costs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        if self.level == 1:
            return self.threshold(costs, weights)
        threshold = self.threshold(costs.detach(), weights.detach())
        beyond = torch.where(weights > 0, (costs - threshold[..., None]).clamp_min(0), 0.0)
        return threshold + (weights * beyond).sum(-1) / (1 - self.level)

    def threshold(self, costs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Where the tail of costs ``(..., n)`` begins, with weights that add up to one."""
        if self.level == 1:
            return torch.where(weights > 0, costs, -torch.inf).amax(-1)
        return _quantile(costs, weights, self.level).squeeze(-1)

    def realised(self, cost: torch.Tensor, threshold: torch.Tensor) -> torch.Tensor:
        """The risk estimated from one outcome and a threshold of the tail (Rockafellar–Uryasev).

        Its mean over outcomes is least, and the risk, at the true threshold. Not for level 1.
        """
        beyond = (cost - threshold).clamp_min(0) / (1 - self.level)
        return (1 - self.share) * cost + self.share * (threshold + beyond)


@dataclass(frozen=True)
class Expectation(Risk):
    """The mean.

    Examples
    --------
    It is what every problem minimises unless told otherwise.

    >>> import forewise as fw
    >>> fw.Expectation()([10.0, 20.0, 30.0, 40.0])
    tensor(25., dtype=torch.float64)
    """

    level: float = field(default=0.0, init=False, repr=False)  # the tail is everything

    @property
    def share(self) -> float:
        """0."""
        return 0.0


@dataclass(frozen=True)
class CVaR(Risk):
    """Conditional value at risk: the mean of the worst share 1 − level of costs, 0 ≤ level < 1.

    Examples
    --------
    The mean of the worst half is 35, where the mean of all is 25:

    >>> import forewise as fw
    >>> fw.CVaR(0.5)([10.0, 20.0, 30.0, 40.0])
    tensor(35., dtype=torch.float64)
    """

    level: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _as_level(self.level))

    @property
    def share(self) -> float:
        """1; 0 where the tail is everything."""
        return 0.0 if self.level == 0 else 1.0


@dataclass(frozen=True)
class MeanCVaR(Risk):
    """(1 − weight) · mean + weight · CVaR(level), with 0 ≤ weight ≤ 1 and 0 ≤ level < 1.

    Examples
    --------
    Half the mean of 25, half the CVaR of 35:

    >>> import forewise as fw
    >>> fw.MeanCVaR(weight=0.5, level=0.5)([10.0, 20.0, 30.0, 40.0])
    tensor(30., dtype=torch.float64)
    """

    weight: float
    level: float

    def __post_init__(self) -> None:
        weight = as_scalar("weight", self.weight).item()
        if not 0 <= weight <= 1:
            raise InvalidInputError(f"weight must be between 0 and 1, but is {self.weight!r}")
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "level", _as_level(self.level))

    @property
    def share(self) -> float:
        """The weight; 0 where the tail is everything."""
        return 0.0 if self.level == 0 else self.weight


@dataclass(frozen=True)
class WorstCase(Risk):
    """The largest possible cost.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.WorstCase()([10.0, 20.0, 30.0, 40.0])
    tensor(40., dtype=torch.float64)
    """

    level: float = field(default=1.0, init=False, repr=False)

    @property
    def share(self) -> float:
        """1."""
        return 1.0


def _as_level(value: Any) -> float:
    level = as_scalar("level", value).item()
    if level == 1:
        raise InvalidInputError("level must be below 1, but is 1: use WorstCase()")
    if not 0 <= level < 1:
        raise InvalidInputError(f"level must be at least 0 and below 1, but is {value!r}")
    return level


def _quantile(costs: torch.Tensor, weights: torch.Tensor, level: float) -> torch.Tensor:
    """The smallest cost that at least `level` of the weight does not exceed, ``(..., 1)``."""
    sorted_costs, order = costs.sort(-1)
    reached = weights.gather(-1, order).cumsum(-1) >= level - 1e-12
    return sorted_costs.gather(-1, reached.to(torch.uint8).argmax(-1, keepdim=True))


class Centre(NamedTuple):
    """Where tangents touch, and how much of the curvature they lack is added to each scenario.

    A program whose solution is its own centre has the solution of the risk and its derivatives, if
    `curvature` are the multipliers of the rows divided by the weights.
    """

    u: torch.Tensor  # (n_contexts, n_scenarios, n_recourse)
    curvature: torch.Tensor  # (n_contexts, n_scenarios)


def tail_program(
    program: ScenarioProgram, risk: Risk, centre: Centre | None = None
) -> ScenarioProgram:
    """The program of a risk; its first stage must cost the same in every scenario."""
    free = {"lower": -torch.inf, "upper": torch.inf}
    bounds = {
        name: torch.nn.functional.pad(
            bound,
            (0, int(risk.level < 1) if name.startswith("recourse") else 1),
            value=free[name.removeprefix("recourse_")],
        )
        for name, bound in program.bounds.items()
    }
    r, slope, bound = program.r, program.d, program.r.new_zeros(1, 1)
    D, d = (1 - risk.share) * program.D, (1 - risk.share) * program.d
    if centre is not None:
        bent = apply(program.D, centre.u)
        slope = program.d + bent
        bound = 0.5 * (centre.u * bent).sum(-1)
        D = D + centre.curvature[..., None, None] * program.D
        d = d - centre.curvature[..., None] * bent
    has_excess = risk.level < 1
    k, n_coupled = program.n_recourse, program.T.shape[-2]
    W, V, row = program.W, program.V, slope
    positive, zero = [], []
    if has_excess:
        W, V, D = _padded(W, columns=1), _padded(V, columns=1), _padded(D, rows=1, columns=1)
        row = torch.cat([slope, -slope.new_ones(*slope.shape[:2], 1)], -1)
        positive, zero = [W.new_zeros(1, 1, 1, k + 1)], [r.new_zeros(1, 1, 1)]
        positive[0][..., -1] = -1
        d = joined([d, d.new_full((1, 1, 1), risk.share / (1 - risk.level))], -1)
    threshold = program.T.new_zeros(1, 1, 1, program.n_decisions + 1)
    threshold[..., -1] = -1
    q = torch.cat([program.q, program.q.new_full((len(program.q), 1), risk.share)], -1)
    return ScenarioProgram(
        weights=program.weights,
        q=q,
        c=program.c,
        P=_padded(program.P, rows=1, columns=1),
        G=_padded(program.G, columns=1),
        h=program.h,
        E=_padded(program.E, columns=1),
        e=program.e,
        D=D,
        d=d,
        T=joined([_padded(program.T, columns=1), threshold], -2),
        W=joined([W[:, :, :n_coupled], row.unsqueeze(-2), W[:, :, n_coupled:], *positive], -2),
        r=joined([r[:, :, :n_coupled], bound.unsqueeze(-1), r[:, :, n_coupled:], *zero], -1),
        F=_padded(program.F, columns=1),
        V=V,
        s=program.s,
        **bounds,
    )


def _padded(block: torch.Tensor, rows: int = 0, columns: int = 0) -> torch.Tensor:
    return torch.nn.functional.pad(block, (0, columns, 0, rows))
