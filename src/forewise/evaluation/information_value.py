"""What is it worth to know the outcome, and to reckon with its distribution?

Three costs of a context stand behind both answers, always in this order:

    WS  = Σ_j w_j min_z f(z, y_j)           wait and see: decide once the outcome is known
    RP  = min_z Σ_j w_j f(z, y_j)           the recourse problem: the stochastic program
    EEV = Σ_j w_j f(z̄, y_j)                 decide for the mean outcome

with z̄ = argmin_z f(z, Σ_j w_j y_j).

May import: exceptions, arguments, scenarios, problems, solvers, and its siblings `checks`,
`evaluation`.
"""

from __future__ import annotations

from typing import Any

import torch

from forewise.evaluation.checks import as_scenarios, bound_problem
from forewise.evaluation.optima import (
    constant_scenarios,
    expected_costs,
    informed_optimum,
    optimum,
    parts,
    possible_values,
)
from forewise.problems import Problem
from forewise.scenarios import Scenarios
from forewise.solvers import Solver


def expected_value_of_perfect_information(
    problem: Problem, scenarios: Scenarios, solver: Solver | None = None, *, given: Any = None
) -> torch.Tensor:
    """What knowing the outcome before deciding would save, on average (EVPI).

    Prefer it to judge how much a better forecast could be worth at most.

        EVPI = RP − WS = min_z Σ_j w_j f(z, y_j) − Σ_j w_j min_z f(z, y_j)

    It is nonnegative up to the solver's tolerance. One program per context and one per scenario
    is solved; scenarios of weight zero are passed over.

    Parameters
    ----------
    problem : Problem
    scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    solver : Solver, optional
        `AutoSolver()` by default.
    given : as for `regrets`

    Returns
    -------
    tensor (n_contexts,)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    problem = bound_problem(problem, scenarios.n_contexts, given)
    return optimum(problem, scenarios, solver).cost - _wait_and_see(problem, scenarios, solver)


def value_of_stochastic_solution(
    problem: Problem, scenarios: Scenarios, solver: Solver | None = None, *, given: Any = None
) -> torch.Tensor:
    """What is saved by deciding for all scenarios instead of for their mean (VSS).

    Prefer it to judge whether a distribution is worth forecasting, or a mean would do.

        VSS = EEV − RP = Σ_j w_j f(z̄, y_j) − min_z Σ_j w_j f(z, y_j)
        z̄ = argmin_z f(z, Σ_j w_j y_j)

    It is nonnegative up to the solver's tolerance. Where several decisions are optimal for the
    mean outcome, as often for a `Portfolio`, EEV is that of the one the solver returns.

    Parameters
    ----------
    problem : Problem
    scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    solver : Solver, optional
        `AutoSolver()` by default.
    given : as for `regrets`

    Returns
    -------
    tensor (n_contexts,)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    problem = bound_problem(problem, scenarios.n_contexts, given)
    for_the_mean = optimum(problem, _mean_scenario(scenarios), solver).decision
    in_truth = expected_costs(problem, for_the_mean, scenarios)
    return in_truth - optimum(problem, scenarios, solver).cost


def _wait_and_see(problem: Problem, scenarios: Scenarios, solver: Solver | None) -> torch.Tensor:
    total = torch.zeros(scenarios.n_contexts, dtype=torch.float64)
    for part in parts(scenarios.n_contexts, scenarios.n_scenarios * scenarios.n_outcomes):
        chosen = constant_scenarios(scenarios[part])
        context, scenario = (chosen.weights > 0).nonzero(as_tuple=True)
        context_number = context + part.start
        outcome, weight = chosen.values[context, scenario], chosen.weights[context, scenario]
        own = problem.for_contexts(context_number)
        informed = informed_optimum(own, outcome, solver, context_number)
        total.index_add_(0, context_number, weight * informed.cost)
    return total


def _mean_scenario(scenarios: Scenarios) -> Scenarios:
    means = []
    for part in parts(scenarios.n_contexts, scenarios.n_scenarios * scenarios.n_outcomes):
        chosen = constant_scenarios(scenarios[part])
        means.append(chosen.weights.unsqueeze(1) @ possible_values(chosen))
    return Scenarios(torch.cat(means))
