"""How far from optimal is a decision, when the distribution can only be drawn from?

May import: exceptions, arguments, scenarios, problems, solvers, and its siblings `checks`,
`evaluation`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from scipy.special import stdtrit

from forewise.evaluation.checks import as_decision, as_level, as_scenarios, bound_problem
from forewise.evaluation.optima import expected_costs, largest, optimum
from forewise.exceptions import InvalidInputError
from forewise.problems import Problem
from forewise.problems.feasibility import FEASIBILITY_TOLERANCE
from forewise.scenarios import Scenarios
from forewise.solvers import Solver
from forewise.validation.arguments import as_table


@dataclass(frozen=True, eq=False)
class Gap:
    """How far decisions are from optimal, estimated from independent batches of scenarios.

    Attributes
    ----------
    estimate : tensor (n_contexts,)
        Mean gap over the batches.
    upper : tensor (n_contexts,)
        One-sided confidence bound of the gap, for each context by itself.
    n_batches : int
    """

    estimate: torch.Tensor
    upper: torch.Tensor
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

    Prefer it to `expected_regrets` where the distribution can be drawn from but is too large to
    be solved for. Every batch k compares the decision with the batch's own optimum on the same
    scenarios, so that most of their noise cancels:

        G_k = Σ_j w_j f(z, y_kj) − min_z' Σ_j w_j f(z', y_kj)
        estimate = mean(G),    upper = mean(G) + t(level, K − 1) std(G) / √K

    A batch's optimum is optimistic about the true one, so E[G_k] is at least the true gap: the
    bound errs to the safe side, and less so the larger the batches are. It is per context, not
    for all contexts at once.

    Parameters
    ----------
    problem : Problem
    decision : table, as for `regrets`
    scenario_batches : iterable of Scenarios
        At least 2, drawn independently of each other and of the decision; each has values
        (n_contexts, n_scenarios, n_outcomes). A generator is read one batch at a time.
    level : float
        Confidence that the true gap is at most `upper`, between 0 and 1.
    solver : Solver, optional
        `AutoSolver()` by default.
    given, on_infeasible, tolerance
        As for `regrets`.

    Returns
    -------
    Gap
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
        chosen = as_decision(
            "decision", decision, problem, shape, largest(batch), on_infeasible, tolerance
        )
        mean = chosen.priced(expected_costs(problem, chosen.decision, batch))
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
