"""The last correction of nearly accurate contexts."""

from __future__ import annotations

import numpy as np

import forewise as fw
from forewise.solvers.interior_point import polishing


def test_a_correction_that_cannot_be_computed_leaves_the_solution_as_it_was(monkeypatch):
    """With weights forty orders of magnitude apart, the decomposition may not converge."""
    returns = np.random.default_rng(0).normal(0.02, 0.1, size=(3, 12, 4))
    problem, scenarios = fw.Portfolio(np.full(4, 0.02), 1.0), fw.Scenarios(returns)
    expected = fw.solve(problem, scenarios, solver=fw.InteriorPointSolver())
    asked = []

    def fails(*arguments, **settings):
        asked.append(arguments)
        raise np.linalg.LinAlgError("SVD did not converge in Linear Least Squares")

    monkeypatch.setattr(polishing, "ACCEPTED", -1.0)  # nothing is accurate enough
    monkeypatch.setattr(np.linalg, "lstsq", fails)
    found = fw.solve(problem, scenarios, solver=fw.InteriorPointSolver())
    assert len(asked) == 3
    assert found.status == expected.status
    assert (found.decision == expected.decision).all()
