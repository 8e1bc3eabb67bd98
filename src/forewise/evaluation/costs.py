"""What the metrics share: checked arguments, costs of decisions and optima.

Contexts are worked on in `chunks`, so that the memory of an evaluation does not depend on their
number. Results carry no gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from forewise.exceptions import InvalidInputError, SolveError
from forewise.problems import Problem
from forewise.problems.feasibility import FEASIBILITY_TOLERANCE, feasible_contexts
from forewise.scenarios import Scenarios
from forewise.solvers import Solution, Solver, Status, solve
from forewise.solvers.solution import listed_failures
from forewise.validation.arguments import WORKING_DTYPE, as_finite, as_scalar, as_table
from forewise.validation.frames import column_names, row_labels
from forewise.validation.parameters import require_instance

# Items of a chunk: at most so many, and so many numbers in all. A solver holds some dozen copies of
# the numbers.
_MAX_ITEMS = 4096
_MAX_ENTRIES = 2**19
_SHOWN = 5  # columns that an error message lists


def chunks(
    n_items: int,
    entries_per_item: int,
    max_entries: int = _MAX_ENTRIES,
    max_items: int = _MAX_ITEMS,
) -> Iterator[slice]:
    """Slices that cover `n_items`, each small enough to be worked on at once."""
    size = max(1, min(max_items, max_entries // max(entries_per_item, 1)))
    for start in range(0, n_items, size):
        yield slice(start, min(start + size, n_items))


def scenario_chunks(
    scenarios: Scenarios, entries_per_context: int | None = None
) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
    """Slices of contexts with their values (B, M, n) and weights (B, M), as float64 constants.

    Scenarios of weight zero, whose values may be anything, have values 0.
    """
    entries = entries_per_context or scenarios.n_scenarios * scenarios.n_outcomes
    for part in chunks(scenarios.n_contexts, entries):
        chosen = _constant(scenarios[part])
        possible = chosen.weights.unsqueeze(-1) > 0
        yield part, torch.where(possible, chosen.values, 0.0), chosen.weights


def _constant(scenarios: Scenarios) -> Scenarios:
    values = scenarios.values.detach().to("cpu", WORKING_DTYPE)
    return Scenarios(
        values, None if scenarios.equally_weighted else scenarios.weights.detach().cpu()
    )


def as_constant(name: str, value: Any) -> torch.Tensor:
    """A finite float64 tensor on the processor, detached from any gradient."""
    return as_finite(name, value.detach() if isinstance(value, torch.Tensor) else value).cpu()


def as_outcome(value: Any, like: Scenarios | None = None) -> torch.Tensor:
    """Observed outcomes ``(n_contexts, n_outcomes)``, of the shape of `like`; a vector is one."""
    outcome = as_constant("outcome", as_table("outcome", value))
    if 0 in outcome.shape:
        raise InvalidInputError(
            "outcome must have shape (n_contexts, n_outcomes), both at least 1, but has shape "
            f"{tuple(outcome.shape)}"
        )
    if like is not None and outcome.shape != (like.n_contexts, like.n_outcomes):
        raise InvalidInputError(
            "outcome must have shape (n_contexts, n_outcomes) = "
            f"{(like.n_contexts, like.n_outcomes)} as the scenarios have, but has shape "
            f"{tuple(outcome.shape)}"
        )
    return outcome


def as_scenarios(name: str, value: Any) -> Scenarios:
    """`value`, if it is a `Scenarios`."""
    if not isinstance(value, Scenarios):
        raise InvalidInputError(
            f"{name} must be a forewise.Scenarios, but is a {type(value).__name__}: wrap the "
            "array as Scenarios(values)"
        )
    return value


def as_level(name: str, value: Any) -> float:
    """A probability strictly between 0 and 1."""
    level = as_scalar(name, value).item()
    if not 0 < level < 1:
        raise InvalidInputError(
            f"{name} must lie strictly between 0 and 1, but is {level:g}: 95 % is 0.95"
        )
    return level


def bound_problem(problem: Problem, n_contexts: int, given: Any) -> Problem:
    """The problem of the contexts, if it is one."""
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    return problem.bound_for(n_contexts, given)


def as_decision(
    name: str,
    value: Any,
    problem: Problem,
    shape: tuple[int, int],
    like: torch.Tensor | None = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Decisions ``(n_contexts, n_decisions)`` for outcomes of `shape`, and which are feasible.

    `like` has the size of typical decisions.
    """
    n_contexts, n_outcomes = shape
    problem._check_width("outcome", n_outcomes)
    decision = as_table(name, value).detach().to("cpu", WORKING_DTYPE)
    wanted = (n_contexts, problem.n_decisions(n_outcomes))
    if decision.shape != wanted:
        raise InvalidInputError(
            f"{name} must have shape (n_contexts, n_decisions) = {wanted}, but has shape "
            f"{tuple(decision.shape)}"
        )
    columns, names = column_names(value), problem.decision_names(n_outcomes)
    if columns and names and columns != names and sorted(columns) == sorted(names):
        raise InvalidInputError(
            f"{name} must have its columns in the order of the problem's decisions "
            f"({', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}), but they come "
            "in another one: reorder them"
        )
    feasible = feasible_contexts(
        problem.constraints(wanted[1]), decision, like, on_infeasible, tolerance,
        name=name, rows=row_labels(value),
    )  # fmt: skip
    return decision, feasible


class Optimum(NamedTuple):
    """Optimal decisions ``(n_contexts, n_decisions)`` and their costs ``(n_contexts,)``."""

    decision: torch.Tensor
    cost: torch.Tensor


def largest(scenarios: Scenarios) -> torch.Tensor:
    """The largest absolute value of a possible outcome in each context, ``(n_contexts, 1)``."""
    sizes = [values.abs().amax((1, 2)) for _, values, _ in scenario_chunks(scenarios)]
    return torch.cat(sizes).unsqueeze(1)


def optimum(
    problem: Problem,
    scenarios: Scenarios,
    solver: Solver | None,
    numbers: torch.Tensor | None = None,
) -> Optimum:
    """The optimal decision of every context for its scenarios.

    `numbers` are what error messages call the contexts, if not by their position.
    """
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    problem._check_width("scenarios", scenarios.n_outcomes)
    decisions, costs = [], []
    for part in chunks(scenarios.n_contexts, scenarios.n_scenarios * scenarios.n_outcomes):
        with torch.no_grad():
            own = problem.for_contexts(part)
            solution = solve(own, _constant(scenarios[part]), solver, "return")
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
    """The optimum of every row of `outcome` under perfect information: one certain scenario."""
    return optimum(problem, Scenarios(outcome.unsqueeze(1)), solver, numbers)


def realised_costs(problem: Problem, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
    """Cost of every decision at its outcome, ``(n_contexts,)``; constraints are not checked."""
    with torch.no_grad():
        return problem.unchecked_cost(decision, outcome).detach()


def expected_costs(
    problem: Problem,
    decision: torch.Tensor,
    scenarios: Scenarios,
    compared_to: torch.Tensor | None = None,
) -> torch.Tensor:
    """Weighted mean cost of every decision over its scenarios, ``(n_contexts,)``.

    With `compared_to`, the mean difference to the costs of these decisions, taken scenario by
    scenario: it may be small beside the costs.
    """
    M = scenarios.n_scenarios
    means = []
    entries = M * (scenarios.n_outcomes + decision.shape[1])
    for part, values, weights in scenario_chunks(scenarios, entries):
        outcome = values.flatten(0, 1)
        context = torch.arange(part.start, part.stop).repeat_interleave(M)
        own = problem.for_contexts(context)
        costs = realised_costs(own, decision[context], outcome)
        if compared_to is not None:
            costs = costs - realised_costs(own, compared_to[context], outcome)
        means.append((weights * costs.reshape(-1, M)).sum(1))
    return torch.cat(means)


def _require_optimal(solution: Solution, contexts: range | list[int]) -> None:
    """Raise with the numbers that the contexts have outside of their chunk."""
    pairs = zip(contexts, solution.status, strict=False)
    failed = [(i, status) for i, status in pairs if status is not Status.OPTIMAL]
    if not failed:
        return
    raise SolveError(
        f"the optimum to compare with was not found: {listed_failures(failed)}. "
        "Leave these contexts out, or pass another solver.",
        solution,
    )
