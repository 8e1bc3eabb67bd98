"""Regrets: what decisions cost beyond the best, in three meanings of "best".

`regrets` compares with whoever knew the outcome, `fair_regrets` with whoever knew its
distribution, at the outcome that was seen; `expected_regrets` does so over the distribution.

May import: exceptions, arguments, scenarios, problems, solvers, and its siblings `checks`,
`evaluation`.
"""

from __future__ import annotations

from typing import Any

import torch

from forewise.evaluation.checks import as_decision, as_outcome, as_scenarios, bound_problem
from forewise.evaluation.optima import (
    expected_costs,
    informed_optimum,
    largest,
    optimum,
    realised_costs,
)
from forewise.exceptions import InvalidInputError
from forewise.problems import Problem
from forewise.problems.feasibility import FEASIBILITY_TOLERANCE
from forewise.scenarios import Scenarios
from forewise.solvers import Solver
from forewise.validation.tables import check_same_rows

# Solvers call a context optimal at relative residuals of 1e-8: less than this share of the
# decision's cost cannot be told from zero.
_INDISTINGUISHABLE = 1e-8


def regrets(
    problem: Problem,
    decision: Any,
    outcome: Any,
    solver: Solver | None = None,
    *,
    given: Any = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> torch.Tensor:
    """Regret of every decision: its cost beyond that of perfect information.

    Prefer it where the distribution of the outcome is not known, as with real data; its floor
    is the noise of the outcome, which no decision can avoid.

        regret_i = f(z_i, y_i) − min_z f(z, y_i)

    It is nonnegative up to the solver's tolerance. A decision that breaks the problem's
    constraints would seem better than the best one, and is refused.

    Parameters
    ----------
    problem : Problem
    decision : table (n_contexts, n_decisions), or (n_contexts,) where there is one decision
        An array, tensor, data frame or series, as `decide` returns it.
    outcome : table (n_contexts, n_outcomes), or (n_contexts,) where there is one outcome
    solver : Solver, optional
        What finds the optimum of every outcome; `AutoSolver()` by default.
    given : as for `CvxpyProblem.bound`, optional
        What is known in each context, unless the problem is bound to it already.
    on_infeasible : {"raise", "infinite"}
        What to do with decisions that break a constraint: raise an `InfeasibleDecisionError`, or
        count them as infinitely dear.
    tolerance : float
        The `Problem.violation` up to which a decision meets the constraints. Orders that were
        rounded to pieces need more than the default: 0.01 lets them exceed a budget by 1 %.

    Returns
    -------
    tensor (n_contexts,)
    """
    check_same_rows(decision=decision, outcome=outcome, given=given)
    outcome = as_outcome(outcome)
    problem = bound_problem(problem, len(outcome), given)
    chosen = as_decision(
        "decision", decision, problem, outcome.shape, outcome, on_infeasible, tolerance
    )
    least = informed_optimum(problem, outcome, solver).cost
    return chosen.priced(realised_costs(problem, chosen.decision, outcome)) - least


def regret(
    problem: Problem,
    decision: Any,
    outcome: Any,
    solver: Solver | None = None,
    *,
    given: Any = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> float:
    """Mean regret R: mean cost beyond that of perfect information.

    Prefer it to compare learners on data whose distribution is not known.

        R = (1/n) Σ_i f(z_i, y_i) − min_z f(z, y_i)

    Parameters and shapes are those of `regrets`.
    """
    every = regrets(
        problem, decision, outcome, solver,
        given=given, on_infeasible=on_infeasible, tolerance=tolerance,
    )  # fmt: skip
    return every.mean().item()


def relative_regret(
    problem: Problem,
    decision: Any,
    outcome: Any,
    solver: Solver | None = None,
    *,
    given: Any = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> float:
    """Total regret as a share of the total optimal cost.

    Prefer it to compare problems of different scales, where knowing the outcome still leaves
    costs to pay.

        Σ_i [f(z_i, y_i) − min_z f(z, y_i)]  /  Σ_i |min_z f(z, y_i)|

    Where the optimal costs are zero, as for a `Newsvendor` always, there is nothing to be
    relative to, and an `InvalidInputError` is raised. Zero is what a solver cannot tell from it:
    less than 1e-8 of the decisions' costs, or than twice the rounding of the optimal costs.

    Parameters and shapes are those of `regrets`.
    """
    check_same_rows(decision=decision, outcome=outcome, given=given)
    outcome = as_outcome(outcome)
    problem = bound_problem(problem, len(outcome), given)
    chosen = as_decision(
        "decision", decision, problem, outcome.shape, outcome, on_infeasible, tolerance
    )
    informed = informed_optimum(problem, outcome, solver)
    costs = realised_costs(problem, chosen.decision, outcome)
    scale = informed.cost.abs().sum()
    # An optimal cost of 1e-16 is a zero, but only its distance to the cost of the solver's own
    # decision says so where the decisions to be judged cost nothing either.
    rounding = (informed.cost - realised_costs(problem, informed.decision, outcome)).abs().sum()
    spent = costs[costs.isfinite()].abs().sum()
    if scale <= torch.maximum(_INDISTINGUISHABLE * spent, 2 * rounding):
        raise InvalidInputError(
            "relative_regret needs optimal costs other than zero, but with the outcome known "
            f"they sum to {scale.item():g} while the decisions cost {spent.item():g}: use regret"
        )
    return ((chosen.priced(costs) - informed.cost).sum() / scale).item()


def oracle_decision(
    problem: Problem, true_scenarios: Scenarios, solver: Solver | None = None, *, given: Any = None
) -> torch.Tensor:
    """Decisions of whoever knows the true distribution of the outcome.

    Prefer to compute them once, and pass them as `oracle=` for every method that is compared.

        z*_i = argmin_z Σ_j w_ij f(z, y_ij),    y_ij the true scenarios of context i

    Parameters
    ----------
    problem : Problem
    true_scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    solver : Solver, optional
        `AutoSolver()` by default.
    given : as for `regrets`

    Returns
    -------
    tensor (n_contexts, n_decisions)
    """
    scenarios = as_scenarios("true_scenarios", true_scenarios)
    return optimum(bound_problem(problem, scenarios.n_contexts, given), scenarios, solver).decision


def fair_regrets(
    problem: Problem,
    decision: Any,
    outcome: Any,
    true_scenarios: Scenarios | None = None,
    solver: Solver | None = None,
    *,
    oracle: Any = None,
    given: Any = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> torch.Tensor:
    """Fair regret of every decision: its cost beyond the oracle's, at the outcome seen.

    Prefer it to `regrets` where the distribution is known, as in simulations: what the oracle
    could not avoid is not counted. Single entries may be negative, by luck; `expected_regrets`
    takes the luck out. Where several decisions are optimal for the true scenarios, as often for
    a `Portfolio`, it depends on which of them the oracle takes; `expected_regrets` does not.

        fair_regret_i = f(z_i, y_i) − f(z*_i, y_i),    z*_i the `oracle_decision`

    Parameters
    ----------
    problem : Problem
    decision, outcome : tables, as for `regrets`
    true_scenarios : Scenarios, optional
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios). May be
        left out if `oracle` is given.
    solver : Solver, optional
        What finds the oracle's decisions; `AutoSolver()` by default.
    oracle : table (n_contexts, n_decisions), optional
        The `oracle_decision` where it is known already; nothing is solved then.
    given, on_infeasible, tolerance
        As for `regrets`; an oracle that breaks a constraint is always refused.

    Returns
    -------
    tensor (n_contexts,)
    """
    check_same_rows(decision=decision, outcome=outcome, given=given)
    outcome = as_outcome(outcome)
    problem = bound_problem(problem, len(outcome), given)
    chosen = as_decision(
        "decision", decision, problem, outcome.shape, outcome, on_infeasible, tolerance
    )
    if true_scenarios is not None:
        as_scenarios("true_scenarios", true_scenarios)
        _require_same_shape(true_scenarios, outcome)
    if oracle is not None:
        best = as_decision(
            "oracle", oracle, problem, outcome.shape, outcome, tolerance=tolerance
        ).decision
    elif true_scenarios is not None:
        best = optimum(problem, true_scenarios, solver).decision
    else:
        raise InvalidInputError(
            "true_scenarios or oracle must be given, but both are missing: where the "
            "distribution is not known, use regrets"
        )
    costs = chosen.priced(realised_costs(problem, chosen.decision, outcome))
    return costs - realised_costs(problem, best, outcome)


def fair_regret(
    problem: Problem,
    decision: Any,
    outcome: Any,
    true_scenarios: Scenarios | None = None,
    solver: Solver | None = None,
    *,
    oracle: Any = None,
    given: Any = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> float:
    """Mean fair regret FR: mean cost beyond the oracle's, at the outcomes seen.

    Prefer it to compare with published FR; `expected_regret` has the same mean and less noise.

        FR = (1/n) Σ_i f(z_i, y_i) − f(z*_i, y_i)

    Parameters and shapes are those of `fair_regrets`.
    """
    every = fair_regrets(
        problem, decision, outcome, true_scenarios, solver,
        oracle=oracle, given=given, on_infeasible=on_infeasible, tolerance=tolerance,
    )  # fmt: skip
    return every.mean().item()


def expected_regrets(
    problem: Problem,
    decision: Any,
    true_scenarios: Scenarios,
    solver: Solver | None = None,
    *,
    oracle: Any = None,
    given: Any = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> torch.Tensor:
    """Expected regret of every decision: its expected cost beyond the oracle's.

    Prefer it wherever the true distribution is known: it is the mean of `fair_regrets` over
    outcomes, without the noise of drawing one. It is nonnegative up to the solver's tolerance.

        expected_regret_i = Σ_j w_ij [ f(z_i, y_ij) − f(z*_i, y_ij) ],    z*_i the `oracle_decision`

    Parameters
    ----------
    problem : Problem
    decision : table, as for `regrets`
    true_scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    solver : Solver, optional
        What finds the oracle's decisions; `AutoSolver()` by default.
    oracle : table (n_contexts, n_decisions), optional
        The `oracle_decision` where it is known already; nothing is solved then.
    given, on_infeasible, tolerance
        As for `regrets`; an oracle that breaks a constraint is always refused.

    Returns
    -------
    tensor (n_contexts,)
    """
    shape, like = _shape_of(as_scenarios("true_scenarios", true_scenarios)), largest(true_scenarios)
    problem = bound_problem(problem, shape[0], given)
    chosen = as_decision("decision", decision, problem, shape, like, on_infeasible, tolerance)
    if oracle is not None:
        best = as_decision("oracle", oracle, problem, shape, like, tolerance=tolerance).decision
    else:
        best = optimum(problem, true_scenarios, solver).decision
    return chosen.priced(expected_costs(problem, chosen.decision, true_scenarios, compared_to=best))


def expected_regret(
    problem: Problem,
    decision: Any,
    true_scenarios: Scenarios,
    solver: Solver | None = None,
    *,
    oracle: Any = None,
    given: Any = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> float:
    """Mean expected regret: mean expected cost beyond the oracle's.

    Prefer it to `fair_regret` to rank methods in simulations.

        (1/n) Σ_i Σ_j w_ij [ f(z_i, y_ij) − f(z*_i, y_ij) ]

    Parameters and shapes are those of `expected_regrets`.
    """
    every = expected_regrets(
        problem, decision, true_scenarios, solver,
        oracle=oracle, given=given, on_infeasible=on_infeasible, tolerance=tolerance,
    )  # fmt: skip
    return every.mean().item()


def _shape_of(scenarios: Scenarios) -> tuple[int, int]:
    return scenarios.n_contexts, scenarios.n_outcomes


def _require_same_shape(true_scenarios: Scenarios, outcome: torch.Tensor) -> None:
    if _shape_of(true_scenarios) != tuple(outcome.shape):
        raise InvalidInputError(
            "true_scenarios must have (n_contexts, n_outcomes) = "
            f"{tuple(outcome.shape)} as the outcome has, but have {_shape_of(true_scenarios)}"
        )
