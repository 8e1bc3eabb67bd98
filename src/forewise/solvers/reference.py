"""A trusted solver, one context at a time: what the others are checked against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forewise.problems.base import Problem
from forewise.problems.programs import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver, solver_for, valid_contexts
from forewise.solvers.bounds import solve_with_bounds
from forewise.solvers.conic.engines import ClarabelEngine
from forewise.solvers.conic.solver import ConicSolver
from forewise.solvers.extensive import (
    ExtensiveForm,
    ExtensivePoint,
    extensive_form,
    scaled_form,
    unload_point,
)
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.interior_point.certificates import search_certificate
from forewise.solvers.interior_point.core import ProgramArrays, no_points
from forewise.solvers.interior_point.differentiation import TensorPoints
from forewise.solvers.interior_point.equilibration import solve_in_units, units_of
from forewise.solvers.interior_point.loose_bounds import loose_limits, solve_with_nearer_bounds
from forewise.solvers.interior_point.solver import assemble
from forewise.solvers.interior_point.verification import (
    ACCEPTED,
    Residuals,
    corrected,
    residuals_of_one,
    residuals_of_points,
)
from forewise.solvers.libraries import Answer, run_clarabel, run_highs
from forewise.solvers.solution import Certificate, Solution, Status, only


@dataclass(frozen=True, repr=False)
class ReferenceSolver(ProgramSolver):
    """HiGHS for linear and integer programs, Clarabel for others, looped over the contexts.

    Its solutions carry no gradients, and a linear program's is a vertex of the optimal face. What
    a library claims is verified against the raw data as for every solver: optimal by the same
    residuals, infeasible and unbounded by a proof. *When to use*: to check another solver.

    Parameters
    ----------
    tolerance : float
        Feasibility and gap tolerance given to the library.

    Examples
    --------
    >>> import forewise as fw
    >>> problem = fw.Portfolio([1.0, 0.5], minimum_return=1.0, budget=1.5)
    >>> scenarios = fw.datasets.pop(3, n_assets=2).true_scenarios(50)
    >>> ours = fw.solve(problem, scenarios)
    >>> theirs = fw.solve(problem, scenarios, fw.ReferenceSolver())
    >>> bool((ours.objective - theirs.objective).abs().max() < 1e-8)
    True
    """

    tolerance: float = 1e-9

    def unsupported_reason(self, problem: Problem) -> str | None:
        """None: there is a library for every type of program."""
        return None

    @torch.no_grad()
    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve the problem's program, whatever its type."""
        conic = ConicSolver(self.tolerance, ClarabelEngine())
        integer = IntegerSolver(gap=self.tolerance)
        solver = solver_for(problem.program_type, self, conic, integer)
        return solver.solve_program(problem.program(scenarios))

    @torch.no_grad()
    def solve_program(self, program: ScenarioProgram) -> Solution:
        """Solve the contexts one after the other."""
        if program.bounds:
            return solve_with_bounds(program, self.solve_program)
        limits = loose_limits(program)
        if limits is None:
            return self._solve_in_units(program)
        return solve_with_nearer_bounds(program, limits, self._solve_in_units)

    def _solve_in_units(self, program: ScenarioProgram) -> Solution:
        arrays, units = units_of(program)
        if units is None:
            return self._solve(program, arrays)
        return solve_in_units(program, units, lambda part, of_it, _: self._solve(part, of_it))

    def _solve(self, program: ScenarioProgram, arrays: ProgramArrays) -> Solution:
        B, device = program.n_contexts, program.weights.device
        points, status = no_points(arrays, B), [Status.INVALID] * B
        certificates: dict[int, Certificate] = {}
        iterations = np.zeros(B, dtype=np.int64)
        for i in valid_contexts(program).nonzero().flatten().tolist():
            alone = program.take(torch.tensor([i], device=device))
            form = extensive_form(alone, 0)
            best, iterations[i] = self._optimum(alone, form)
            if best is not None:
                status[i] = Status.OPTIMAL
                unload_point(form, best, points, i)
                continue
            # Whatever the library claims, a verdict needs a proof.
            certificate = search_certificate(alone, self._solve_one)
            status[i] = Status.INACCURATE if certificate is None else certificate.status
            certificates |= {} if certificate is None else {i: certificate}
        optimal = torch.tensor([s is Status.OPTIMAL for s in status], device=device)
        found = residuals_of_points(arrays, points, device)
        found = Residuals(*(only(optimal, part) for part in (found.primal, found.dual, found.gap)))
        x = TensorPoints.from_arrays(points, device)
        return assemble(program, x, found, iterations, status, certificates)

    def _optimum(
        self, alone: ScenarioProgram, form: ExtensiveForm
    ) -> tuple[ExtensivePoint | None, int]:
        """The first point whose residuals are accepted, if one is found; and the iterations."""
        iterations, tried = 0, []
        # The cost is flat around its minimum, and decisions have half the digits that costs have:
        # the tightest tolerance that the library can reach comes first.
        for tolerance in (1e-3 * self.tolerance, self.tolerance):
            answer = _run(form, tolerance)
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
        answer = _run(extensive_form(alone, 0), self.tolerance)
        return answer.point if answer.status is Status.OPTIMAL else None


def _run(form: ExtensiveForm, tolerance: float) -> Answer:
    """HiGHS's or Clarabel's answer, found in the scaled form."""
    scaled, units = scaled_form(form)
    answer = (run_clarabel if form.P.nnz else run_highs)(scaled, tolerance)
    return answer._replace(point=units.back(answer.point))


def _is_optimal(alone: ScenarioProgram, form: ExtensiveForm, point: ExtensivePoint) -> bool:
    """Whether the residuals of a point are accepted."""
    return _is_finite(point) and bool(residuals_of_one(alone, form, point).worst <= ACCEPTED)


def _is_finite(point: ExtensivePoint) -> bool:
    return all(np.isfinite(part).all() for part in point)
