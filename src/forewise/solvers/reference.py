"""A trusted solver, one context at a time: what the others are checked against.

May import: problems, and its siblings `base`, `conic`, `conic_engines`, `extensive`, `highs`,
`integer`, `optimality`, `solution`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp
import torch

from forewise.problems.base import Problem
from forewise.problems.kinds import ProgramKind
from forewise.problems.program import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver, valid_contexts
from forewise.solvers.conic import ConicSolver
from forewise.solvers.conic_engines import Clarabel
from forewise.solvers.extensive import ExtensiveForm, extensive_form
from forewise.solvers.highs import run_highs
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.optimality import ACCEPTED, residuals
from forewise.solvers.solution import Duals, Solution, Status

Array = np.ndarray


class _Answer(NamedTuple):
    """What a library said of one extensive form."""

    status: Status
    x: Array
    inequality: Array
    equality: Array
    iterations: int


@dataclass(frozen=True)
class ReferenceSolver(ProgramSolver):
    """HiGHS for linear and integer programs, Clarabel for others, looped over the contexts.

    Prefer it to check another solver, or for a single program where nothing depends on speed.
    Its solutions carry no gradients, and a linear program's is a corner of the optimal face.

    Parameters
    ----------
    tolerance : float
        Feasibility and gap tolerance given to the library.
    """

    tolerance: float = 1e-9

    def refusal(self, problem: Problem) -> str | None:
        """None: there is a library for every kind of program."""
        return None

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve the problem's program, whatever its kind."""
        with torch.no_grad():
            if problem.program_kind is ProgramKind.CONIC:
                return ConicSolver(self.tolerance, Clarabel()).solve(problem, scenarios)
            if problem.program_kind is ProgramKind.INTEGER:
                return IntegerSolver(gap=self.tolerance).solve(problem, scenarios)
            return super().solve(problem, scenarios)

    def solve_program(self, program: ScenarioProgram) -> Solution:
        """Solve the contexts one after the other."""
        valid = valid_contexts(program).tolist()
        B, M = program.weights.shape
        z = np.full((B, program.n_decisions), np.nan)
        u = np.full((B, M, program.n_recourse), np.nan)
        first, nu = np.zeros((B, program.h.shape[-1])), np.zeros((B, program.e.shape[-1]))
        scenario = np.zeros((B, M, program.r.shape[-1]))
        nus = np.zeros((B, M, program.s.shape[-1]))
        status, iterations = [Status.INVALID] * B, np.zeros(B, dtype=np.int64)
        for i in range(B):
            if not valid[i]:
                continue
            form = extensive_form(program, i)
            answer = self._solve_form(form)
            status[i], iterations[i] = answer.status, answer.iterations
            if answer.status is Status.OPTIMAL:
                n, g, n_e = z.shape[1], first.shape[1], nu.shape[1]
                z[i], first[i], nu[i] = answer.x[:n], answer.inequality[:g], answer.equality[:n_e]
                u[i] = 0.0
                u[i, form.kept] = answer.x[n:].reshape(len(form.kept), -1)
                scenario[i, form.kept] = answer.inequality[g:].reshape(len(form.kept), -1)
                nus[i, form.kept] = answer.equality[n_e:].reshape(len(form.kept), -1)
        return _checked(program, (z, u, first, nu, scenario, nus), status, iterations)

    def _solve_form(self, form: ExtensiveForm) -> _Answer:
        if form.P.nnz:
            return self._clarabel(form)
        return _Answer(*run_highs(form, self.tolerance)[:5])

    def _clarabel(self, form: ExtensiveForm) -> _Answer:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self.tolerance
        settings.tol_ktratio = 1e-3 * self.tolerance
        n_e = len(form.e)
        cones = [clarabel.ZeroConeT(n_e)] if n_e else []
        cones += [clarabel.NonnegativeConeT(len(form.b))] if len(form.b) else []
        A = sp.vstack([form.E, form.A], format="csc")
        b = np.concatenate([form.e, form.b])
        P = sp.triu(form.P, format="csc")
        answer = clarabel.DefaultSolver(P, form.q, A, b, cones, settings).solve()
        known = {
            clarabel.SolverStatus.Solved: Status.OPTIMAL,
            clarabel.SolverStatus.PrimalInfeasible: Status.INFEASIBLE,
            clarabel.SolverStatus.DualInfeasible: Status.UNBOUNDED,
        }
        status = known.get(answer.status, Status.INACCURATE)
        duals = np.array(answer.z)
        return _Answer(status, np.array(answer.x), duals[n_e:], duals[:n_e], answer.iterations)


def _checked(
    program: ScenarioProgram, arrays: tuple[Array, ...], status: list[Status], iterations: Array
) -> Solution:
    """Make a solution of it; "optimal" only where the raw data agree."""
    z, u, first, nu, scenario, nus = (
        torch.from_numpy(array).to(program.weights.device) for array in arrays
    )
    duals = Duals(first, nu, scenario, nus)
    found = residuals(program, z, u, duals)
    # The library's own tolerances are absolute: allow it what they allow.
    good = (found.worst <= 100 * ACCEPTED).tolist()
    agreed = [
        Status.INACCURATE if claimed is Status.OPTIMAL and not ok else claimed
        for claimed, ok in zip(status, good, strict=True)
    ]
    return Solution(
        decision=z,
        recourse=u,
        objective=program.objective(z, u).detach(),
        duals=duals,
        status=tuple(agreed),
        primal_residual=found.primal,
        dual_residual=found.dual,
        gap=found.gap,
        iterations=torch.from_numpy(iterations).to(z.device),
    )
