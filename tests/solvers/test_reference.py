"""The reference: who is asked about what."""

from __future__ import annotations

import numpy as np

import forewise as fw
from forewise.problems.bounds import with_bounds_as_rows
from forewise.solvers.extensive import extensive_form


def portfolios(n_contexts=6, n_scenarios=12, n_assets=5):
    """Portfolios that cannot lose: all of a whole face are optimal."""
    returns = np.random.default_rng(0).normal(1.0, 0.3, (n_contexts, n_scenarios, n_assets))
    return fw.Portfolio(np.linspace(0.8, 1.2, n_assets), 1.0), fw.Scenarios(returns)


def test_a_linear_program_has_no_quadratic_entries():
    problem, scenarios = portfolios()
    assert extensive_form(with_bounds_as_rows(problem.program(scenarios)), 0).P.nnz == 0
    curved = fw.QuadraticNewsvendor([1.0], 0.0, 0.0, [3.0], 2.0, [1.0])
    program = with_bounds_as_rows(curved.program(fw.Scenarios(np.ones((1, 4, 1)))))
    assert extensive_form(program, 0).P.nnz == 1 + 4


def test_a_linear_programs_solution_is_a_corner():
    """As many rows are active as there are variables; a central solution has far fewer."""
    problem, scenarios = portfolios()

    def active(solver):
        solution = fw.solve(problem, scenarios, solver)
        gains = (scenarios.values * solution.decision[:, None]).sum(-1)
        losses = solution.recourse.squeeze(-1)
        not_held = (solution.decision <= 1e-8).sum(-1)
        rows = (losses <= 1e-8).sum(-1) + (gains + losses <= 1e-8).sum(-1)
        return not_held + rows + 1  # the return that is asked for is always met exactly

    n_variables = 5 + 12
    assert (active(fw.ReferenceSolver()) >= n_variables).all()
    assert (active(fw.InteriorPointSolver()) < n_variables).all()
