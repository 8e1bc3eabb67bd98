"""Values of information and of stochastic solutions, and the optimality gap of decisions.

WS  = Σ_j w_j min_z f(z, y_j)      wait and see: decide once the outcome is known
RP  = min_z Σ_j w_j f(z, y_j)      the recourse problem: the stochastic program
EEV = Σ_j w_j f(z̄, y_j)            decide for the mean outcome: z̄ = argmin_z f(z, Σ_j w_j y_j)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from scipy.special import stdtrit

from forewise.evaluation.costs import (
    as_decision,
    as_level,
    as_scenarios,
    bound_problem,
    expected_costs,
    informed_optimum,
    largest,
    optimum,
    scenario_chunks,
)
from forewise.exceptions import InvalidInputError
from forewise.problems import Problem
from forewise.problems.feasibility import FEASIBILITY_TOLERANCE
from forewise.scenarios import Scenarios
from forewise.solvers import Solver
from forewise.validation.arguments import as_table


def expected_value_of_perfect_information(
    problem: Problem, scenarios: Scenarios, solver: Solver | None = None, *, given: Any = None
) -> torch.Tensor:
    """Expected value of perfect information, EVPI = RP − WS, ``(n_contexts,)``.

    An upper bound on what a better forecast is worth; nonnegative up to the solver's tolerance.
    Solves one program per context and one per scenario of positive weight.

    Parameters
    ----------
    problem : Problem
    scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    solver : Solver, optional
        `AutoSolver()` by default.
    given : as for `regrets`

    Examples
    --------
    Who knew whether 10 or 20 will come would pay nothing:

    >>> import forewise as fw
    >>> scenarios = fw.Scenarios([[[10.0], [20.0]]])
    >>> fw.metrics.expected_value_of_perfect_information(fw.Newsvendor(3.0, 1.0), scenarios)
    tensor([5.], dtype=torch.float64)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    problem = bound_problem(problem, scenarios.n_contexts, given)
    wait_and_see = torch.zeros(scenarios.n_contexts, dtype=torch.float64)
    stochastic = optimum(problem, scenarios, solver).cost
    for part, values, weights in scenario_chunks(scenarios):
        possible = weights > 0
        number = possible.nonzero()[:, 0] + part.start
        own = problem.for_contexts(number)
        informed = informed_optimum(own, values[possible], solver, number)
        wait_and_see.index_add_(0, number, weights[possible] * informed.cost)
    return stochastic - wait_and_see


def value_of_stochastic_solution(
    problem: Problem, scenarios: Scenarios, solver: Solver | None = None, *, given: Any = None
) -> torch.Tensor:
    """Value of the stochastic solution, VSS = EEV − RP, ``(n_contexts,)``.

    What a forecast of the distribution is worth beside one of the mean; nonnegative up to the
    solver's tolerance. Where several decisions are optimal for the mean outcome, as often for a
    `Portfolio`, EEV is that of the one the solver returns. Parameters as for
    `expected_value_of_perfect_information`.

    Examples
    --------
    For the mean of 15 the order is 15, which costs 10 on average; 20 costs 5:

    >>> import forewise as fw
    >>> scenarios = fw.Scenarios([[[10.0], [20.0]]])
    >>> fw.metrics.value_of_stochastic_solution(fw.Newsvendor(3.0, 1.0), scenarios)
    tensor([5.], dtype=torch.float64)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    problem = bound_problem(problem, scenarios.n_contexts, given)
    means = [weights.unsqueeze(1) @ values for _, values, weights in scenario_chunks(scenarios)]
    for_the_mean = optimum(problem, Scenarios(torch.cat(means)), solver).decision
    expected = expected_costs(problem, for_the_mean, scenarios)
    return expected - optimum(problem, scenarios, solver).cost


@dataclass(frozen=True, eq=False)
class Gap:
    """Optimality gap of decisions, estimated from independent batches of scenarios.

    Examples
    --------
    >>> import forewise as fw
    >>> data, problem = fw.datasets.nv1(1, random_state=0), fw.datasets.nv_problem()
    >>> batches = [data.true_scenarios(100, random_state=seed) for seed in range(5)]
    >>> found = fw.metrics.optimality_gap(problem, [[5.0]], batches)
    >>> found.n_batches, bool((found.estimate <= found.upper).all())
    (5, True)
    """

    estimate: torch.Tensor  # mean gap over the batches (n_contexts,)
    upper: torch.Tensor  # one-sided confidence bound, for each context separately (n_contexts,)
    n_batches: int


def optimality_gap(
    problem: Problem,
    decision: Any,
    scenario_batches: Iterable[Scenarios],
    level: float = 0.95,
    solver: Solver | None = None,
    *,
    given: Any = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> Gap:
    """Confidence bound on a decision's distance to the optimum (Mak, Morton and Wood, 1999).

        G_k = Σ_j w_j f(z, y_kj) − min_z' Σ_j w_j f(z', y_kj)      for every batch k
        estimate = mean(G),    upper = mean(G) + t(level, K − 1) std(G) / √K

    A batch's optimum is optimistic about the true one, so E[G_k] is at least the true gap: the
    bound is conservative, and less so the larger the batches are.

    *When to use*: the distribution can be drawn from but is too large for `expected_regrets`.

    Parameters
    ----------
    scenario_batches : iterable of Scenarios
        At least 2, drawn independently of each other and of the decision; each has values
        (n_contexts, n_scenarios, n_outcomes). A generator is read one batch at a time.
    level : float
        Confidence that the true gap of a context is at most `upper`, between 0 and 1.
    problem, decision, solver, given, on_infeasible, tolerance
        As for `regrets`.

    Examples
    --------
    The mean demand is a poor order; ten batches prove how poor at most:

    >>> import forewise as fw
    >>> data, problem = fw.datasets.nv1(1, random_state=0), fw.datasets.nv_problem()
    >>> mean = data.true_scenarios(1_000).values.mean(1)
    >>> batches = [data.true_scenarios(100, random_state=seed) for seed in range(1, 11)]
    >>> found = fw.metrics.optimality_gap(problem, mean, batches)
    >>> bool(found.estimate > 0)
    True
    """
    level = as_level("level", level)
    n_contexts = len(as_table("decision", decision))
    problem = bound_problem(problem, n_contexts, given)
    # Scenarios can be indexed, so Python would loop over one as over a list of contexts.
    if isinstance(scenario_batches, Scenarios) or not isinstance(scenario_batches, Iterable):
        raise InvalidInputError(
            "scenario_batches must be an iterable of forewise.Scenarios, but is a "
            f"{type(scenario_batches).__name__}: pass a list of independent batches"
        )
    gaps: list[torch.Tensor] = []
    for k, batch in enumerate(scenario_batches):
        name = f"scenario_batches[{k}]"
        as_scenarios(name, batch)
        if batch.n_contexts != n_contexts:
            raise InvalidInputError(
                f"{name} must have the decision's {n_contexts} context(s), but has "
                f"{batch.n_contexts}"
            )
        shape = (n_contexts, batch.n_outcomes)
        chosen, feasible = as_decision(
            "decision", decision, problem, shape, largest(batch), on_infeasible, tolerance
        )
        mean = torch.where(feasible, expected_costs(problem, chosen, batch), torch.inf)
        gaps.append(mean - optimum(problem, batch, solver).cost)
    K = len(gaps)
    if K < 2:
        raise InvalidInputError(
            f"scenario_batches must have at least 2 batches, but has {K}: one says nothing "
            "about its own error"
        )
    stacked = torch.stack(gaps)
    estimate = stacked.mean(0)
    half_width = float(stdtrit(K - 1, level)) * stacked.std(0) / K**0.5
    # An infinite gap has no deviation.
    upper = torch.where(estimate.isinf(), estimate, estimate + half_width)
    return Gap(estimate, upper, K)
