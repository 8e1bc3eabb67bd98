"""Problems of the bakery and of Victoria. Costs are made up: the files have demand only."""

from __future__ import annotations

import numpy as np

from forewise.exceptions import InvalidInputError
from forewise.problems import CVaR, Newsvendor, Problem, QuadraticNewsvendor
from forewise.problems.cvxpy import CvxpyProblem
from forewise.problems.cvxpy.expressions import import_cvxpy

#: Cost of a unit too few and of a unit too many, together.
SHORTAGE_AND_EXCESS = 10.0
_HALF_HOURS, _HOURS = 48, 24


def bakery_newsvendor(level: float) -> Newsvendor:
    """How many pieces to bake where a share `level` of the days should have enough.

    Shortage and excess cost 10 together, so that costs of several levels can be compared.
    """
    if not 0 < level < 1:
        raise InvalidInputError(f"level must be between 0 and 1, but is {level!r}")
    total = SHORTAGE_AND_EXCESS
    return Newsvendor(shortage=total * level, excess=total * (1 - level))


def oven_problem(capacity: float = 100.0, cvar: float | None = None) -> Problem:
    """How to fill an oven that three products share; demand is in percent of the oven.

        cost = Σ_i 3 shortage_i + excess_i + 0.1 excess_i²,    Σ_i order_i ≤ capacity

    A little waste is given away at cost; much of it has to be carted off. With `cvar`, minimise the
    mean of the worst 1 − cvar of the outcomes instead of the mean of all.
    """
    problem = QuadraticNewsvendor(
        quadratic=[0.0] * 3, linear=[0.0] * 3, shortage_quadratic=[0.0] * 3, shortage=[3.0] * 3,
        excess_quadratic=[0.1] * 3, excess=[1.0] * 3, price=[1.0] * 3, budget=capacity,
    )  # fmt: skip
    return problem if cvar is None else problem.with_risk(CVaR(cvar))


def day_ahead_problem(
    ramp: float = 0.35,
    power: float = 0.3,
    energy: float = 1.2,
    shortage: float = 3.0,
    excess: float = 1.0,
) -> CvxpyProblem:
    """A schedule of 48 half-hours, made a day ahead, with a battery that helps on the day.

    What is still missing after the battery costs `shortage` per squared GW, what is too much
    `excess`. `ramp` is the largest change of the schedule from one half-hour to the next, in GW.
    The battery, of `power` GW and `energy` GWh, is recourse: it starts half full, knows the whole
    day, and is set once an hour.
    """
    cp = import_cvxpy()
    schedule = cp.Variable(_HALF_HOURS, nonneg=True, name="schedule")
    load = cp.Parameter(_HALF_HOURS, name="load")
    battery = cp.Variable(_HOURS)  # what it gives; negative when it is charged
    by_half_hour = np.kron(np.eye(_HOURS), np.ones((_HALF_HOURS // _HOURS, 1)))
    missing = load - schedule - by_half_hour @ battery
    stored = 0.5 * energy - cp.cumsum(battery)
    imbalance = shortage * cp.sum_squares(cp.pos(missing))
    imbalance += excess * cp.sum_squares(cp.pos(-missing))
    rows = [
        cp.abs(cp.diff(schedule)) <= ramp,
        cp.abs(battery) <= power,
        stored >= 0,
        stored <= energy,
    ]
    return CvxpyProblem(cp.Minimize(imbalance), rows, decision=schedule, outcome=load)
