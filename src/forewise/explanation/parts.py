"""What an explanation has in it: plain numbers, in the units of the user's table and problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Unavailable:
    """What stands in the place of a part that cannot be computed."""

    reason: str


@dataclass(frozen=True, eq=False)
class Drivers:
    """The scenarios of a context, and how much of the decision rests on each.

    The influence of a scenario is the derivative of the decision with respect to its outcome,
    |∂z_i / ∂y_j| times the outcome's spread, averaged over random reweightings of the scenarios
    (a Bayesian bootstrap). In a newsvendor it is the probability that the scenario is the critical
    quantile. Shares of a decision sum to one, or are 0 where no scenario moves it.

    Attributes
    ----------
    outcome : array (n_scenarios, n_outcomes)
    weight : array (n_scenarios,)
    cost : array (n_scenarios,), of the decision if this outcome occurs
    share : array (n_decisions, n_scenarios), of the influence on the explained decisions
    more, less : arrays (n_decisions,)
        Weight of the scenarios whose cost would fall if the decision were larger, or smaller.
    """

    outcome: np.ndarray
    weight: np.ndarray
    cost: np.ndarray
    share: np.ndarray | Unavailable
    more: np.ndarray
    less: np.ndarray

    def leading(self, decision: int, share: float = 0.8) -> np.ndarray:
        """Numbers of the fewest scenarios with this share of the influence, largest first."""
        if isinstance(self.share, Unavailable):
            return np.empty(0, dtype=int)
        own = self.share[decision]
        order = np.argsort(-own, kind="stable")
        count = int(np.searchsorted(own[order].cumsum(), share * own.sum() * (1 - 1e-12))) + 1
        return order[: min(count, int((own > 0).sum()))]


@dataclass(frozen=True, eq=False)
class CostCurve:
    """Expected cost (or the risk of it) as one decision moves and the others stay.

    `cost` is infinite where a constraint would be broken.
    """

    name: str
    chosen: float
    value: np.ndarray  # (n_points,)
    cost: np.ndarray  # (n_points,)


@dataclass(frozen=True)
class Binding:
    """A constraint that holds with equality.

    `shadow_price` is by how much the optimal expected cost changes if the right-hand side, as the
    constraint's name has it, grows by one unit.
    """

    name: str
    shadow_price: float


@dataclass(frozen=True)
class Uncertainty:
    """Variance of an outcome: what more data would reduce, and what is noise."""

    outcome: str
    epistemic: float
    aleatoric: float
    how: str

    @property
    def epistemic_share(self) -> float:
        """The share that more data would reduce; NaN where nothing is uncertain."""
        total = self.epistemic + self.aleatoric
        return self.epistemic / total if total > 0 else float("nan")


@dataclass(frozen=True)
class Sensitivity:
    """How the decision and its expected cost move with a number that the problem knows.

    Attributes
    ----------
    name, kind : such as "shortage[bread]"; "parameter" or "given"
    value : as it is now
    decision : change of each explained decision per unit
    cost : change of the optimal expected cost per unit
    how : "gradient" through the solver, or "re-solves" with a value a little lower and higher
    """

    name: str
    kind: str
    value: float
    decision: dict[str, float]
    cost: float
    how: str


@dataclass(frozen=True)
class Neighbour:
    """A past row that resembles the context.

    `distance` is the root mean square difference of the columns, in their standard deviations;
    `cost` is what today's decision would have cost then.
    """

    label: Any
    distance: float
    outcome: dict[str, float]
    cost: float


@dataclass(frozen=True)
class Change:
    """The smallest change of one column, among its past values, that moves the decision.

    `distance` is the share of past rows between the two values; 1 for another category.
    """

    column: str
    now: Any
    then: Any
    distance: float
    decision: dict[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """All that was found out about one decision.

    Attributes
    ----------
    names : list of str
        The decisions that are explained one by one.
    decision : dict of float
        All decisions by name.
    decision_error : dict of float
        Standard deviation of the explained decisions if the scenarios' weights were drawn anew (a
        Bayesian bootstrap): differences below it are noise. Scenarios are stratified, so that it
        is rather too large.
    expected_cost, objective : float
        The mean cost over the scenarios, and what the problem minimises: the mean or its risk.
    context : dict
        The columns of the row.
    outcome_names : list of str
    note : str
        Why uncertainty does not matter for this problem, where it does not.
    extrapolates : bool
        Whether the context lies far outside of the training rows.
    drivers : Drivers
    cost_curves : list of CostCurve
    constraints : list of Binding
        First-stage constraints. Those of scenarios are in the cost.
    uncertainty : list of Uncertainty
    sensitivities : list of Sensitivity
    neighbours : list of Neighbour
    changes : list of Change
    """

    names: list[str]
    decision: dict[str, float]
    decision_error: dict[str, float]
    expected_cost: float
    objective: float
    context: dict[str, Any]
    outcome_names: list[str]
    note: str
    extrapolates: bool
    drivers: Drivers
    cost_curves: list[CostCurve]
    constraints: list[Binding] | Unavailable
    uncertainty: list[Uncertainty] | Unavailable
    sensitivities: list[Sensitivity] | Unavailable
    neighbours: list[Neighbour] | Unavailable
    changes: list[Change] | Unavailable
