"""Regrets: what decisions cost beyond the best, in three meanings of "best".

`regrets` compares with whoever knew the outcome, `fair_regrets` with whoever knew its
distribution, at the outcome that was seen; `expected_regrets` does so over the distribution.

May import: exceptions, arguments, scenarios, problems, solvers, and its siblings `checks`,
`evaluation`.
"""

from __future__ import annotations

from typing import Any

import torch

from forewise.exceptions import InvalidInputError
from forewise.metrics.checks import as_decision, as_outcome, as_scenarios
from forewise.metrics.evaluation import expected_costs, informed_optimum, optimum, realised_costs
from forewise.problems import Problem
from forewise.scenarios import Scenarios
from forewise.solvers import Solver

# Solvers call a context optimal at relative residuals of 1e-8: less than this share of the
# decision's cost cannot be told from zero.
_INDISTINGUISHABLE = 1e-8


def regrets(
    problem: Problem, decision: Any, outcome: Any, solver: Solver | None = None
) -> torch.Tensor:
    """Regret of every decision: its cost beyond that of perfect information.

    Prefer it where the distribution of the outcome is not known, as with real data; its floor
    is the noise of the outcome, which no decision can avoid.

        regret_i = f(z_i, y_i) − min_z f(z, y_i)

    A decision that violates the problem's constraints is not repaired and may have a negative
    regret; otherwise it is nonnegative up to the solver's tolerance.

    Parameters
    ----------
    problem : Problem
    decision : array or tensor (n_contexts, n_decisions)
    outcome : array or tensor (n_contexts, n_outcomes)
    solver : Solver, optional
        What finds the optimum of every outcome; `AutoSolver()` by default.

    Returns
    -------
    tensor (n_contexts,)
    """
    outcome = as_outcome(outcome)
    decision = as_decision("decision", decision, problem, outcome.shape)
    least = informed_optimum(problem, outcome, solver).cost
    return realised_costs(problem, decision, outcome) - least


def regret(problem: Problem, decision: Any, outcome: Any, solver: Solver | None = None) -> float:
    """Mean regret R: mean cost beyond that of perfect information.

    Prefer it to compare learners on data whose distribution is not known.

        R = (1/n) Σ_i f(z_i, y_i) − min_z f(z, y_i)

    Parameters and shapes are those of `regrets`.
    """
    return regrets(problem, decision, outcome, solver).mean().item()


def relative_regret(
    problem: Problem, decision: Any, outcome: Any, solver: Solver | None = None
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
    outcome = as_outcome(outcome)
    decision = as_decision("decision", decision, problem, outcome.shape)
    informed = informed_optimum(problem, outcome, solver)
    costs = realised_costs(problem, decision, outcome)
    scale = informed.cost.abs().sum()
    # An optimal cost of 1e-16 is a zero, but only its distance to the cost of the solver's own
    # decision says so where the decisions to be judged cost nothing either.
    rounding = (informed.cost - realised_costs(problem, informed.decision, outcome)).abs().sum()
    if scale <= torch.maximum(_INDISTINGUISHABLE * costs.abs().sum(), 2 * rounding):
        raise InvalidInputError(
            "relative_regret needs optimal costs other than zero, but with the outcome known "
            f"they sum to {scale.item():g} while the decisions cost {costs.abs().sum().item():g}: "
            "use regret"
        )
    return ((costs - informed.cost).sum() / scale).item()


def oracle_decision(
    problem: Problem, true_scenarios: Scenarios, solver: Solver | None = None
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

    Returns
    -------
    tensor (n_contexts, n_decisions)
    """
    return optimum(problem, as_scenarios("true_scenarios", true_scenarios), solver).decision


def fair_regrets(
    problem: Problem,
    decision: Any,
    outcome: Any,
    true_scenarios: Scenarios | None = None,
    solver: Solver | None = None,
    *,
    oracle: Any = None,
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
    decision : array or tensor (n_contexts, n_decisions)
    outcome : array or tensor (n_contexts, n_outcomes)
    true_scenarios : Scenarios, optional
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios). May be
        left out if `oracle` is given.
    solver : Solver, optional
        What finds the oracle's decisions; `AutoSolver()` by default.
    oracle : array or tensor (n_contexts, n_decisions), optional
        The `oracle_decision` where it is known already; nothing is solved then.

    Returns
    -------
    tensor (n_contexts,)
    """
    outcome = as_outcome(outcome)
    decision = as_decision("decision", decision, problem, outcome.shape)
    if true_scenarios is not None:
        as_scenarios("true_scenarios", true_scenarios)
        _require_same_shape(true_scenarios, outcome)
    if oracle is not None:
        best = as_decision("oracle", oracle, problem, outcome.shape)
    elif true_scenarios is not None:
        best = optimum(problem, true_scenarios, solver).decision
    else:
        raise InvalidInputError(
            "true_scenarios or oracle must be given, but both are missing: where the "
            "distribution is not known, use regrets"
        )
    return realised_costs(problem, decision, outcome) - realised_costs(problem, best, outcome)


def fair_regret(
    problem: Problem,
    decision: Any,
    outcome: Any,
    true_scenarios: Scenarios | None = None,
    solver: Solver | None = None,
    *,
    oracle: Any = None,
) -> float:
    """Mean fair regret FR: mean cost beyond the oracle's, at the outcomes seen.

    Prefer it to compare with published FR; `expected_regret` has the same mean and less noise.

        FR = (1/n) Σ_i f(z_i, y_i) − f(z*_i, y_i)

    Parameters and shapes are those of `fair_regrets`.
    """
    every = fair_regrets(problem, decision, outcome, true_scenarios, solver, oracle=oracle)
    return every.mean().item()


def expected_regrets(
    problem: Problem,
    decision: Any,
    true_scenarios: Scenarios,
    solver: Solver | None = None,
    *,
    oracle: Any = None,
) -> torch.Tensor:
    """Expected regret of every decision: its expected cost beyond the oracle's.

    Prefer it wherever the true distribution is known: it is the mean of `fair_regrets` over
    outcomes, without the noise of drawing one. It is nonnegative up to the solver's tolerance
    for decisions that meet the constraints.

        expected_regret_i = Σ_j w_ij [ f(z_i, y_ij) − f(z*_i, y_ij) ],    z*_i the `oracle_decision`

    Parameters
    ----------
    problem : Problem
    decision : array or tensor (n_contexts, n_decisions)
    true_scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    solver : Solver, optional
        What finds the oracle's decisions; `AutoSolver()` by default.
    oracle : array or tensor (n_contexts, n_decisions), optional
        The `oracle_decision` where it is known already; nothing is solved then.

    Returns
    -------
    tensor (n_contexts,)
    """
    shape = _shape_of(as_scenarios("true_scenarios", true_scenarios))
    decision = as_decision("decision", decision, problem, shape)
    if oracle is not None:
        best = as_decision("oracle", oracle, problem, shape)
    else:
        best = optimum(problem, true_scenarios, solver).decision
    return expected_costs(problem, decision, true_scenarios, compared_to=best)


def expected_regret(
    problem: Problem,
    decision: Any,
    true_scenarios: Scenarios,
    solver: Solver | None = None,
    *,
    oracle: Any = None,
) -> float:
    """Mean expected regret: mean expected cost beyond the oracle's.

    Prefer it to `fair_regret` to rank methods in simulations.

        (1/n) Σ_i Σ_j w_ij [ f(z_i, y_ij) − f(z*_i, y_ij) ]

    Parameters and shapes are those of `expected_regrets`.
    """
    return expected_regrets(problem, decision, true_scenarios, solver, oracle=oracle).mean().item()


def _shape_of(scenarios: Scenarios) -> tuple[int, int]:
    return scenarios.n_contexts, scenarios.n_outcomes


def _require_same_shape(true_scenarios: Scenarios, outcome: torch.Tensor) -> None:
    if _shape_of(true_scenarios) != tuple(outcome.shape):
        raise InvalidInputError(
            "true_scenarios must have (n_contexts, n_outcomes) = "
            f"{tuple(outcome.shape)} as the outcome has, but have {_shape_of(true_scenarios)}"
        )
