"""Costs of decisions and optima of contexts, in parts of bounded size.

Everything that the metrics solve or sum over scenarios passes through here, so that the memory
of an evaluation depends on the number of contexts only through its result.

May import: exceptions, arguments, scenarios, problems, solvers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from forewise.exceptions import SolveError
from forewise.problems import Problem
from forewise.scenarios import Scenarios
from forewise.solvers import Solution, Solver, Status, solve
from forewise.validation.arguments import WORKING_DTYPE, require_instance

# Contexts that are worked on at once: at most so many, and so many numbers in all. A solver
# holds some dozen copies of the numbers.
_MAX_CONTEXTS = 4096
_MAX_ENTRIES = 2**19
_SHOWN = 5  # failed contexts that an error message lists


class Optimum(NamedTuple):
    """Optimal decisions ``(n_contexts, n_decisions)`` and their costs ``(n_contexts,)``."""

    decision: torch.Tensor
    cost: torch.Tensor


def parts(n_contexts: int, entries_per_context: int) -> Iterator[slice]:
    """Slices of the contexts that are small enough to be worked on at once."""
    size = max(1, min(_MAX_CONTEXTS, _MAX_ENTRIES // max(entries_per_context, 1)))
    for start in range(0, n_contexts, size):
        yield slice(start, min(start + size, n_contexts))


def constant_scenarios(scenarios: Scenarios) -> Scenarios:
    """The same scenarios in float64 on the processor, without gradients."""
    values = scenarios.values.detach().to("cpu", WORKING_DTYPE)
    return Scenarios(
        values, None if scenarios.equally_weighted else scenarios.weights.detach().cpu()
    )


def possible_values(scenarios: Scenarios) -> torch.Tensor:
    """The values, with 0 for scenarios of weight zero: they cannot happen and may be anything."""
    return torch.where(scenarios.weights.unsqueeze(-1) > 0, scenarios.values, 0.0)


def largest(scenarios: Scenarios) -> torch.Tensor:
    """The largest size of a possible outcome in each context, ``(n_contexts, 1)``."""
    sizes = [
        possible_values(constant_scenarios(scenarios[part])).abs().amax((1, 2))
        for part in parts(scenarios.n_contexts, scenarios.n_scenarios * scenarios.n_outcomes)
    ]
    return torch.cat(sizes).unsqueeze(1)


def optimum(
    problem: Problem,
    scenarios: Scenarios,
    solver: Solver | None,
    numbers: torch.Tensor | None = None,
) -> Optimum:
    """The optimal decision of every context for its scenarios.

    `numbers` are what the messages call the contexts, where it is not their place.
    """
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    problem._check_width("scenarios", scenarios.n_outcomes)
    decisions, costs = [], []
    for part in parts(scenarios.n_contexts, scenarios.n_scenarios * scenarios.n_outcomes):
        with torch.no_grad():
            chosen = constant_scenarios(scenarios[part])
            solution = solve(problem.for_contexts(part), chosen, solver, "return")
        places = range(part.start, part.stop)
        _require_optimal(solution, places if numbers is None else numbers[part].tolist())
        decisions.append(solution.decision.detach())
        costs.append(solution.objective.detach())
    return Optimum(torch.cat(decisions), torch.cat(costs))


def informed_optimum(
    problem: Problem,
    outcome: torch.Tensor,
    solver: Solver | None,
    numbers: torch.Tensor | None = None,
) -> Optimum:
    """The optimum of every row of `outcome` had it been known: one scenario, and certain."""
    return optimum(problem, Scenarios(outcome.unsqueeze(1)), solver, numbers)


def realised_costs(problem: Problem, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
    """Cost of every decision at its outcome, ``(n_contexts,)``; constraints are not looked at."""
    with torch.no_grad():
        return problem.unchecked_cost(decision, outcome).detach()


def expected_costs(
    problem: Problem,
    decision: torch.Tensor,
    scenarios: Scenarios,
    compared_to: torch.Tensor | None = None,
) -> torch.Tensor:
    """Weighted mean cost of every decision over its scenarios, ``(n_contexts,)``.

    With `compared_to` another decision, the mean of the difference: small differences of large
    costs are then taken scenario by scenario.
    """
    M = scenarios.n_scenarios
    means = []
    for part in parts(scenarios.n_contexts, M * (scenarios.n_outcomes + decision.shape[1])):
        chosen = constant_scenarios(scenarios[part])
        outcome = possible_values(chosen).flatten(0, 1)
        context = torch.arange(part.start, part.stop).repeat_interleave(M)
        own = problem.for_contexts(context)
        costs = realised_costs(own, decision[context], outcome)
        if compared_to is not None:
            costs = costs - realised_costs(own, compared_to[context], outcome)
        means.append((chosen.weights * costs.reshape(-1, M)).sum(1))
    return torch.cat(means)


def _require_optimal(solution: Solution, contexts: range | list[int]) -> None:
    """Raise with the numbers that the contexts have outside of their part."""
    failed = [i for i, status in enumerate(solution.status) if status is not Status.OPTIMAL]
    if not failed:
        return
    listed = "; ".join(
        f"context {contexts[i]} is {solution.status[i]} ({solution.status[i].advice})"
        for i in failed[:_SHOWN]
    )
    more = f"; and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
    raise SolveError(
        f"the optimum to compare with was not found: {listed}{more}. Leave these contexts out, "
        "or pass another solver.",
        solution,
    )
