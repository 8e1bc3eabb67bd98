"""Regret: what decisions cost beyond the best ones, for three meanings of "best".

`regrets` compares with perfect information, `fair_regrets` with an oracle that knows the
distribution, at the observed outcome; `expected_regrets` does so over the distribution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from forewise.evaluation.costs import (
    as_decision,
    as_outcome,
    as_scenarios,
    bound_problem,
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
# decision's cost is indistinguishable from zero.
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
    """Regret ``(n_contexts,)``: cost beyond that of perfect information.

        regret_i = f(z_i, y_i) − min_z f(z, y_i)

    Nonnegative up to the solver's tolerance; the noise of the outcome is its floor.

    *When to use*: the distribution of the outcome is not known, as with real data.

    Parameters
    ----------
    problem : Problem
    decision : table (n_contexts, n_decisions), or (n_contexts,) for one decision
        An array, tensor, data frame or series, as `decide` returns it.
    outcome : table (n_contexts, n_outcomes), or (n_contexts,) for one outcome
    solver : Solver, optional
        Finds the optimum of every outcome; `AutoSolver()` by default.
    given : as for `CvxpyProblem.bound`, optional
        What is known in each context, unless the problem is bound to it already.
    on_infeasible : {"raise", "infinite"}
        What to do with decisions that break a constraint: raise an `InfeasibleDecisionError`, or
        count their cost as infinite.
    tolerance : float
        The largest `Problem.violation` of a feasible decision. Rounded orders need more than the
        default: 0.01 lets them exceed a budget by 1 %.

    Examples
    --------
    Two too few at 3 each, and two too many at 1:

    >>> import forewise as fw
    >>> fw.metrics.regrets(fw.Newsvendor(shortage=3, excess=1), [10.0, 10.0], [12.0, 8.0])
    tensor([6., 2.], dtype=torch.float64)
    """
    seen = _realised(problem, decision, outcome, given, on_infeasible, tolerance)
    return seen.costs - informed_optimum(seen.problem, seen.outcome, solver).cost


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
    """Mean regret R = (1/n) Σ_i f(z_i, y_i) − min_z f(z, y_i).

    The mean of `regrets`, which has the parameters.

    Examples
    --------
    The mean of 3 · 2 and 1 · 2:

    >>> import forewise as fw
    >>> fw.regret(fw.Newsvendor(shortage=3.0, excess=1.0), [10.0, 10.0], [12.0, 8.0])
    4.0
    """
    each = regrets(
        problem,
        decision,
        outcome,
        solver,
        given=given,
        on_infeasible=on_infeasible,
        tolerance=tolerance,
    )
    return each.mean().item()


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
    """Total regret as a share of the total optimal cost; parameters as for `regrets`.

        Σ_i [f(z_i, y_i) − min_z f(z, y_i)]  /  Σ_i |min_z f(z, y_i)|

    Where the optimal costs are zero, as always for a `Newsvendor`, an `InvalidInputError` is
    raised. Zero is less than 1e-8 of the decisions' costs, or twice the rounding error of the
    optimal costs.

    *When to use*: problems of different scales whose optimal costs are not zero.

    Examples
    --------
    >>> import forewise as fw
    >>> costs = dict(quadratic=0, linear=1, shortage_quadratic=0, shortage=4, excess_quadratic=0)
    >>> problem = fw.QuadraticNewsvendor(**costs, excess=1)
    >>> round(fw.metrics.relative_regret(problem, [[12.0]], [[10.0]]), 4)
    0.4
    """
    seen = _realised(problem, decision, outcome, given, on_infeasible, tolerance)
    informed = informed_optimum(seen.problem, seen.outcome, solver)
    scale = informed.cost.abs().sum()
    # An optimal cost of 1e-16 is a zero, but only its distance to the cost of the solver's own
    # decision shows it where the evaluated decisions cost nothing either.
    own = realised_costs(seen.problem, informed.decision, seen.outcome)
    rounding = (informed.cost - own).abs().sum()
    spent = seen.paid[seen.paid.isfinite()].abs().sum()
    if scale <= torch.maximum(_INDISTINGUISHABLE * spent, 2 * rounding):
        raise InvalidInputError(
            "relative_regret needs optimal costs other than zero, but with the outcome known "
            f"they sum to {scale.item():g} while the decisions cost {spent.item():g}: use regret"
        )
    return ((seen.costs - informed.cost).sum() / scale).item()


def oracle_decision(
    problem: Problem, true_scenarios: Scenarios, solver: Solver | None = None, *, given: Any = None
) -> torch.Tensor:
    """Optimal decisions ``(n_contexts, n_decisions)`` for the true distribution of the outcome.

        z*_i = argmin_z Σ_j w_ij f(z, y_ij),    y_ij the true scenarios of context i

    Compute them once and pass them as `oracle=` for every method that is compared.

    Examples
    --------
    >>> import forewise as fw
    >>> problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    >>> scenarios = fw.Scenarios([[[1.0], [2.0], [3.0], [4.0], [5.0]]])
    >>> fw.metrics.oracle_decision(problem, scenarios)
    tensor([[4.]], dtype=torch.float64)
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
    """Fair regret ``(n_contexts,)``: cost beyond the oracle's, at the observed outcome.

        fair_regret_i = f(z_i, y_i) − f(z*_i, y_i),    z*_i the `oracle_decision`

    Single entries may be negative by chance. Where several decisions are optimal for the true
    scenarios, as often for a `Portfolio`, it depends on which of them the oracle takes;
    `expected_regrets` does not.

    *When to use*: the distribution is known, as in simulations, and results are compared with
    published ones.

    Parameters
    ----------
    true_scenarios : Scenarios, optional
        Values (n_contexts, n_scenarios, n_outcomes); not needed if `oracle` is given.
    solver : Solver, optional
        Finds the oracle's decisions; `AutoSolver()` by default.
    oracle : table (n_contexts, n_decisions), optional
        The `oracle_decision` where it is known already; nothing is solved then. It must be
        feasible whatever `on_infeasible` is.
    problem, decision, outcome, given, on_infeasible, tolerance
        As for `regrets`.

    Examples
    --------
    Of a single row it may be negative: the oracle knows the distribution, not the outcome.

    >>> import forewise as fw
    >>> data, problem = fw.datasets.nv1(200, random_state=0), fw.datasets.nv_problem()
    >>> found = fw.metrics.fair_regrets(problem, data.y, data.y, data.true_scenarios(50))
    >>> bool((found <= 0).all())
    True
    """
    if true_scenarios is not None:
        as_outcome(outcome, like=as_scenarios("true_scenarios", true_scenarios))
    seen = _realised(problem, decision, outcome, given, on_infeasible, tolerance)
    if oracle is not None:
        n_contexts, n_outcomes = seen.outcome.shape
        best, _ = as_decision(
            "oracle", oracle, seen.problem, (n_contexts, n_outcomes), seen.outcome,
            tolerance=tolerance,
        )  # fmt: skip
    elif true_scenarios is not None:
        best = optimum(seen.problem, true_scenarios, solver).decision
    else:
        raise InvalidInputError(
            "true_scenarios or oracle must be given, but both are missing: where the "
            "distribution is not known, use regrets"
        )
    return seen.costs - realised_costs(seen.problem, best, seen.outcome)


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
    """Mean fair regret FR = (1/n) Σ_i f(z_i, y_i) − f(z*_i, y_i).

    The mean of `fair_regrets`, which has the parameters.

    Examples
    --------
    The oracle itself has none, by definition:

    >>> import forewise as fw
    >>> data, problem = fw.datasets.nv1(50, random_state=0), fw.datasets.nv_problem()
    >>> oracle = fw.metrics.oracle_decision(problem, data.true_scenarios(200))
    >>> fw.fair_regret(problem, oracle, data.y, oracle=oracle)
    0.0
    """
    each = fair_regrets(
        problem,
        decision,
        outcome,
        true_scenarios,
        solver,
        oracle=oracle,
        given=given,
        on_infeasible=on_infeasible,
        tolerance=tolerance,
    )
    return each.mean().item()


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
    """Expected regret ``(n_contexts,)``: expected cost beyond the oracle's.

        expected_regret_i = Σ_j w_ij [ f(z_i, y_ij) − f(z*_i, y_ij) ],    z*_i the `oracle_decision`

    The mean of `fair_regrets` over outcomes, without the noise of drawing one; nonnegative up to
    the solver's tolerance. Parameters as for `fair_regrets`.

    *When to use*: methods are ranked in simulations.

    Examples
    --------
    >>> import forewise as fw
    >>> data, problem = fw.datasets.nv1(3, random_state=0), fw.datasets.nv_problem()
    >>> scenarios = data.true_scenarios(200)
    >>> oracle = fw.metrics.oracle_decision(problem, scenarios)
    >>> bool((fw.metrics.expected_regrets(problem, oracle + 1.0, scenarios) > 0).all())
    True
    """
    scenarios = as_scenarios("true_scenarios", true_scenarios)
    shape, like = (scenarios.n_contexts, scenarios.n_outcomes), largest(scenarios)
    problem = bound_problem(problem, shape[0], given)
    chosen, feasible = as_decision(
        "decision", decision, problem, shape, like, on_infeasible, tolerance
    )
    if oracle is not None:
        best, _ = as_decision("oracle", oracle, problem, shape, like, tolerance=tolerance)
    else:
        best = optimum(problem, scenarios, solver).decision
    costs = expected_costs(problem, chosen, scenarios, compared_to=best)
    return torch.where(feasible, costs, torch.inf)


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
    """Mean expected regret.

    The mean of `expected_regrets`, which has the parameters.

    Examples
    --------
    >>> import forewise as fw
    >>> data, problem = fw.datasets.nv1(50, random_state=0), fw.datasets.nv_problem()
    >>> scenarios = data.true_scenarios(200)
    >>> oracle = fw.metrics.oracle_decision(problem, scenarios)
    >>> fw.metrics.expected_regret(problem, oracle + 1.0, scenarios) > 0
    True
    """
    each = expected_regrets(
        problem,
        decision,
        true_scenarios,
        solver,
        oracle=oracle,
        given=given,
        on_infeasible=on_infeasible,
        tolerance=tolerance,
    )
    return each.mean().item()


class _Realised(NamedTuple):
    """Checked arguments, and the costs ``(n_contexts,)`` of the decisions."""

    problem: Problem
    outcome: torch.Tensor
    paid: torch.Tensor  # of feasible and infeasible decisions alike
    costs: torch.Tensor  # infinite where the decision is infeasible


def _realised(
    problem: Problem, decision: Any, outcome: Any, given: Any, on_infeasible: str, tolerance: float
) -> _Realised:
    """What decisions cost at the observed outcomes."""
    check_same_rows(decision=decision, outcome=outcome, given=given)
    outcome = as_outcome(outcome)
    problem = bound_problem(problem, len(outcome), given)
    chosen, feasible = as_decision(
        "decision", decision, problem, outcome.shape, outcome, on_infeasible, tolerance
    )
    paid = realised_costs(problem, chosen, outcome)
    return _Realised(problem, outcome, paid, torch.where(feasible, paid, torch.inf))
