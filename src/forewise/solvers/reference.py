"""A trusted solver, one context at a time: what the others are checked against.

May import: problems, and its siblings but `auto` and `interior_point`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp
import torch

from forewise.problems.base import Problem
from forewise.problems.programs import ConicProgram, IntegerProgram, ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver, valid_contexts
from forewise.solvers.conic.engines import ClarabelEngine
from forewise.solvers.conic.solver import ConicSolver
from forewise.solvers.extensive import (
    ExtensiveForm,
    ExtensivePoint,
    extensive_form,
    scaled_form,
    unload_point,
)
from forewise.solvers.highs import run_highs
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.interior_point.diagnosis import search
from forewise.solvers.interior_point.differentiation import TensorPoints
from forewise.solvers.interior_point.equilibration import solve_equilibrated
from forewise.solvers.interior_point.kernels.arrays import as_arrays
from forewise.solvers.interior_point.kernels.batch import no_points
from forewise.solvers.interior_point.kernels.points import Points
from forewise.solvers.interior_point.optimality import ACCEPTED, residuals_of_points
from forewise.solvers.interior_point.polishing import corrected
from forewise.solvers.solution import Certificate, Duals, Solution, Status

Array = np.ndarray


class _Answer(NamedTuple):
    """What a library said of one extensive form."""

    status: Status
    point: ExtensivePoint
    iterations: int


@dataclass(frozen=True, repr=False)
class ReferenceSolver(ProgramSolver):
    """HiGHS for linear and integer programs, Clarabel for others, looped over the contexts.

    Prefer it to check another solver, or for a single program where nothing depends on speed.
    Its solutions carry no gradients, and a linear program's is a corner of the optimal face.
    What a library claims is checked against the raw data as every solver's claim is: optimal by
    the same residuals, infeasible and unbounded by a proof.

    Parameters
    ----------
    tolerance : float
        Feasibility and gap tolerance given to the library.
    """

    tolerance: float = 1e-9

    def unsupported_reason(self, problem: Problem) -> str | None:
        """None: there is a library for every kind of program."""
        return None

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve the problem's program, whatever its kind."""
        with torch.no_grad():
            if problem.program_type is ConicProgram:
                return ConicSolver(self.tolerance, ClarabelEngine()).solve(problem, scenarios)
            if problem.program_type is IntegerProgram:
                return IntegerSolver(gap=self.tolerance).solve(problem, scenarios)
            return super().solve(problem, scenarios)

    def solve_program(self, program: ScenarioProgram) -> Solution:
        """Solve the contexts one after the other."""
        with torch.no_grad():
            return solve_equilibrated(program, self._solve_in_units)

    def _solve_in_units(self, program: ScenarioProgram) -> Solution:
        B, valid = program.n_contexts, valid_contexts(program).tolist()
        points, status = no_points(as_arrays(program), B), [Status.INVALID] * B
        certificates: dict[int, Certificate] = {}
        iterations = torch.zeros(B, dtype=torch.long)
        for i in (i for i in range(B) if valid[i]):
            alone = program.take(torch.tensor([i], device=program.weights.device))
            form = extensive_form(alone, 0)
            best, iterations[i] = self._optimum(alone, form)
            if best is not None:
                status[i] = Status.OPTIMAL
                unload_point(form, best, points, i)
                continue
            # Whatever the library claims, a verdict is what can be proved.
            certificate = search(alone, self._solve_one)
            status[i] = Status.INACCURATE if certificate is None else certificate.status
            certificates |= {} if certificate is None else {i: certificate}
        return _assemble(program, points, status, iterations, certificates)

    def _optimum(
        self, alone: ScenarioProgram, form: ExtensiveForm
    ) -> tuple[ExtensivePoint | None, int]:
        """The first point that the raw data accept as optimal, if one is found; iterations."""
        iterations, tried = 0, []
        scaled, units = scaled_form(form)
        # The cost is flat around its minimum, and decisions have half the digits that costs have:
        # the tightest that the library can do comes first.
        for tolerance in (1e-3 * self.tolerance, self.tolerance):
            answer = _solve(scaled, tolerance)
            answer = answer._replace(point=units.back(answer.point))
            iterations += answer.iterations
            tried.append(answer.point)
            if _is_optimal(alone, form, answer.point):
                return answer.point, iterations
        for point in tried:
            better = corrected(form, point) if _is_finite(point) else None
            if better is not None and _is_optimal(alone, form, better):
                return better, iterations
        return None, iterations

    def _solve_one(self, alone: ScenarioProgram) -> ExtensivePoint | None:
        scaled, units = scaled_form(extensive_form(alone, 0))
        answer = _solve(scaled, self.tolerance)
        return units.back(answer.point) if answer.status is Status.OPTIMAL else None


def _solve(form: ExtensiveForm, tolerance: float) -> _Answer:
    """HiGHS's or Clarabel's answer; their tolerances are absolute, and want a scaled form."""
    if form.P.nnz:
        return _clarabel(form, tolerance)
    found = run_highs(form, tolerance)
    point = ExtensivePoint(found.x, found.inequality, found.equality)
    return _Answer(found.status, point, found.iterations)


def _clarabel(form: ExtensiveForm, tolerance: float) -> _Answer:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.tol_ktratio = 1e-3 * tolerance
    n_e = len(form.e)
    cones = [clarabel.ZeroConeT(n_e)] if n_e else []
    cones += [clarabel.NonnegativeConeT(len(form.b))] if len(form.b) else []
    A = sp.vstack([form.E, form.A], format="csc")
    b = np.concatenate([form.e, form.b])
    P = sp.triu(form.P, format="csc")
    answer = clarabel.DefaultSolver(P, form.q, A, b, cones, settings).solve()
    solved = answer.status == clarabel.SolverStatus.Solved
    duals = np.array(answer.z)
    point = ExtensivePoint(np.array(answer.x), duals[n_e:], duals[:n_e])
    return _Answer(Status.OPTIMAL if solved else Status.INACCURATE, point, answer.iterations)


def _is_optimal(alone: ScenarioProgram, form: ExtensiveForm, point: ExtensivePoint) -> bool:
    """Whether the raw data accept a point as optimal."""
    if not _is_finite(point):
        return False
    arrays = as_arrays(alone)
    points = no_points(arrays, 1)
    unload_point(form, point, points, 0)
    return bool(residuals_of_points(arrays, points, torch.device("cpu")).worst <= ACCEPTED)


def _is_finite(point: ExtensivePoint) -> bool:
    return all(np.isfinite(part).all() for part in point)


def _assemble(
    program: ScenarioProgram,
    points: Points,
    status: list[Status],
    iterations: torch.Tensor,
    certificates: dict[int, Certificate],
) -> Solution:
    """Make a solution of it, with NaN where a context is not optimal."""
    device = program.weights.device
    found = residuals_of_points(as_arrays(program), points, device)
    optimal = torch.tensor([s is Status.OPTIMAL for s in status], device=device)

    def only_optimal(values: torch.Tensor) -> torch.Tensor:
        mask = optimal.reshape(-1, *(1,) * (values.ndim - 1))
        return torch.where(mask, values, torch.nan)

    x = TensorPoints(*(only_optimal(part) for part in TensorPoints.of(points, device)))
    return Solution(
        decision=x.z,
        recourse=x.u,
        objective=program.objective(x.z, x.u),
        duals=Duals(x.first, x.nu, x.scenario, x.nus),
        status=tuple(status),
        primal_residual=only_optimal(found.primal),
        dual_residual=only_optimal(found.dual),
        gap=only_optimal(found.gap),
        iterations=iterations.to(device),
        certificates=certificates,
    )
