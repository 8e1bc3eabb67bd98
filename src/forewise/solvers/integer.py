"""The solver of programs with whole numbers, one context at a time.

May import: problems, and its siblings `base`, `extensive`, `highs`, `solution`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.base import Problem
from forewise.problems.programs import IntegerProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import Solver, valid_contexts
from forewise.solvers.extensive import ExtensiveForm, extensive_form
from forewise.solvers.highs import run_highs
from forewise.solvers.solution import Duals, Solution, Status

Array = np.ndarray

#: A context with whole numbers is optimal only if it misses no row by more, relatively.
ACCEPTED = 1e-6


class _Found(NamedTuple):
    """What was found for one context."""

    status: Status
    x: Array
    violation: float
    gap: float
    iterations: int


@dataclass(frozen=True, repr=False)
class IntegerSolver(Solver):
    """HiGHS on the extensive form with all scenarios, one context after the other.

    `AutoSolver` takes it for problems with integer or boolean variables. Its solutions carry no
    gradients and no multipliers (these are NaN, as is the dual residual); the primal residual is
    recomputed from the raw data, with the whole numbers rounded, and the gap is that between the
    cost and the lower bound that HiGHS proved.

    Parameters
    ----------
    gap : float
        How much better than the decision found another one may be, relative to the cost.
    time_limit : float
        Seconds for one context; one that is not done by then is inaccurate.
    """

    gap: float = 1e-6
    time_limit: float = float("inf")

    def __post_init__(self) -> None:
        if not 0 <= self.gap < 1:
            raise InvalidInputError(f"gap must be at least 0 and below 1, but is {self.gap!r}")
        if not self.time_limit > 0:
            raise InvalidInputError(f"time_limit must be positive, but is {self.time_limit!r}")

    def unsupported_reason(self, problem: Problem) -> str | None:
        """What has no whole numbers is refused."""
        if problem.program_type is IntegerProgram:
            return None
        kind = problem.program_type.title
        return f"it becomes {kind}, without whole numbers: use AutoSolver()"

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve the problem's integer program."""
        program = problem.program(scenarios)
        assert isinstance(program, IntegerProgram)  # by `unsupported_reason`
        return self.solve_program(program)

    def solve_program(self, program: IntegerProgram) -> Solution:
        """Solve the contexts one after the other; failures are statuses, not exceptions."""
        plain = program.plain
        valid = valid_contexts(plain).tolist()
        B, M = plain.weights.shape
        z = np.full((B, plain.n_decisions), np.nan)
        u = np.full((B, M, plain.n_recourse), np.nan)
        status, iterations = [Status.INVALID] * B, np.zeros(B, dtype=np.int64)
        primal, gap = np.full(B, np.nan), np.full(B, np.nan)
        first, recourse = (mask.numpy() for mask in (program.first, program.recourse))
        for i in range(B):
            if not valid[i]:
                continue
            form = extensive_form(plain, i)
            whole = np.concatenate([first, np.tile(recourse, len(form.kept))])
            found = self._solve_form(form, whole)
            status[i], iterations[i] = found.status, found.iterations
            if found.status is Status.OPTIMAL:
                primal[i], gap[i] = found.violation, found.gap
                z[i], u[i] = found.x[: z.shape[1]], 0.0
                u[i, form.kept] = found.x[z.shape[1] :].reshape(len(form.kept), -1)
        z_, u_, primal_, gap_ = (
            torch.from_numpy(part).to(plain.weights.device) for part in (z, u, primal, gap)
        )
        with torch.no_grad():
            objective = plain.objective(z_, u_)
        nothing = {name: getattr(plain, name).shape[-1] for name in "hers"}
        return Solution(
            decision=z_,
            recourse=u_,
            objective=objective,
            duals=Duals(
                inequality=z_.new_full((B, nothing["h"]), torch.nan),
                equality=z_.new_full((B, nothing["e"]), torch.nan),
                scenario_inequality=z_.new_full((B, M, nothing["r"]), torch.nan),
                scenario_equality=z_.new_full((B, M, nothing["s"]), torch.nan),
            ),
            status=tuple(status),
            primal_residual=primal_,
            dual_residual=torch.full_like(primal_, torch.nan),
            gap=gap_,
            iterations=torch.from_numpy(iterations).to(z_.device),
        )

    def _solve_form(self, form: ExtensiveForm, whole: Array) -> _Found:
        answer = run_highs(form, ACCEPTED, whole, self.gap, self.time_limit)
        nothing = np.full(len(form.q), np.nan)
        if answer.status is not Status.OPTIMAL:
            return _Found(answer.status, nothing, np.nan, np.nan, answer.iterations)
        x = np.where(whole, np.round(answer.x), answer.x)
        violation = _violation(form, x)
        cost = float(form.q @ x)
        gap = max(cost - answer.bound, 0.0) / max(abs(cost), 1e-9)
        done = violation <= ACCEPTED
        status = Status.OPTIMAL if done else Status.INACCURATE
        return _Found(status, x, violation, gap, answer.iterations)


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
