"""The solver of programs with integers, one context at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.programs import IntegerProgram
from forewise.solvers.base import TypedSolver, valid_contexts
from forewise.solvers.bounds import solve_with_bounds
from forewise.solvers.extensive import ExtensiveForm, extensive_form
from forewise.solvers.libraries import Answer, run_highs
from forewise.solvers.solution import Solution, Status

Array = np.ndarray

#: A context with integers is optimal only if it misses no row by more, relatively.
ACCEPTED = 1e-6


@dataclass(frozen=True, repr=False)
class IntegerSolver(TypedSolver[IntegerProgram]):
    """HiGHS on the extensive form with all scenarios, one context after the other.

    Its solutions carry no gradients and no multipliers (these are NaN, as is the dual residual);
    the primal residual is recomputed from the raw data, with the integers rounded, and the gap is
    that between the cost and the lower bound that HiGHS proved.

    Parameters
    ----------
    gap : float
        How much better than the decision found another one may be, relative to the cost.
    time_limit : float
        Seconds for one context; one that is not done by then is inaccurate.

    Examples
    --------
    Whole shifts of 8 hours, before the hours of work are known:

    >>> import cvxpy as cp
    >>> import forewise as fw
    >>> z, y = cp.Variable(1, integer=True, name="shifts"), cp.Parameter(1, name="work")
    >>> cost = cp.sum(100 * z + 30 * cp.pos(y - 8 * z))
    >>> problem = fw.CvxpyProblem(cp.Minimize(cost), [z >= 0], decision=z, outcome=y)
    >>> work = fw.Scenarios([[[20.0], [30.0], [40.0]]])
    >>> fw.solve(problem, work, fw.solvers.IntegerSolver()).decision
    tensor([[4.]], dtype=torch.float64)
    """

    program_type = IntegerProgram

    gap: float = 1e-6
    time_limit: float = float("inf")

    def __post_init__(self) -> None:
        if not 0 <= self.gap < 1:
            raise InvalidInputError(f"gap must be at least 0 and below 1, but is {self.gap!r}")
        if not self.time_limit > 0:
            raise InvalidInputError(f"time_limit must be positive, but is {self.time_limit!r}")

    def solve_program(self, program: IntegerProgram) -> Solution:
        """Solve the contexts one after the other; failures are statuses, not exceptions."""
        if program.plain.bounds:
            return solve_with_bounds(program, self.solve_program)
        plain = program.plain
        n = plain.n_decisions
        status = [Status.INVALID] * plain.n_contexts
        found = Solution.unsolved(program, status)
        first, recourse = program.first.numpy(), program.recourse.numpy()
        for i in valid_contexts(plain).nonzero().flatten().tolist():
            form = extensive_form(plain, i)
            integer = np.concatenate([first, np.tile(recourse, len(form.kept))])
            answer = run_highs(form, ACCEPTED, integer, self.gap, self.time_limit)
            status[i], found.iterations[i] = answer.status, answer.iterations
            if answer.status is not Status.OPTIMAL:
                continue
            x = np.where(integer, np.round(answer.point.x), answer.point.x)
            violation = _violation(form, x)
            if not violation <= ACCEPTED:
                status[i] = Status.INACCURATE
                continue
            found.primal_residual[i], found.gap[i] = violation, _gap(form, x, answer)
            values = torch.from_numpy(x)
            found.decision[i], found.recourse[i] = values[:n], 0.0
            found.recourse[i, form.kept] = values[n:].reshape(len(form.kept), -1)
        with torch.no_grad():
            objective = plain.objective(found.decision, found.recourse)
        return replace(found, objective=objective, status=tuple(status))


def _gap(form: ExtensiveForm, x: Array, answer: Answer) -> float:
    cost = float(form.q @ x)
    return max(cost - answer.bound, 0.0) / max(abs(cost), 1e-9)


def _violation(form: ExtensiveForm, x: Array) -> float:
    """Largest violation of a row, relative to its coefficients and the size of the solution."""
    worst, size = 0.0, float(np.abs(x).max(initial=0.0))
    for matrix, bound, excess in (
        (form.A, form.b, np.maximum(form.A @ x - form.b, 0)),
        (form.E, form.e, np.abs(form.E @ x - form.e)),
    ):
        if len(bound):
            norm = abs(matrix).max(axis=1).toarray().ravel()
            norm[norm == 0] = 1
            worst = max(worst, float((excess / norm).max()))
            size = max(size, float((np.abs(bound) / norm).max()))
    return worst / (size or 1.0)
