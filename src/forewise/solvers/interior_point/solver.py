"""The structured interior-point solver of scenario programs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.bounds import BoundRows
from forewise.problems.programs import BLOCKS, RIGHT_SIDES, ScenarioProgram
from forewise.solvers.base import ProgramSolver
from forewise.solvers.bounds import with_duals_of_bounds
from forewise.solvers.extensive import ExtensivePoint, extensive_form, load_point
from forewise.solvers.interior_point.certificates import diagnose
from forewise.solvers.interior_point.core import (
    STOPPED,
    Iteration,
    Points,
    ProgramArrays,
    Watch,
    as_arrays,
    entries_of,
    follow_paths,
)
from forewise.solvers.interior_point.differentiation import (
    Path,
    TensorPoints,
    attach_gradients,
    optimal_value,
)
from forewise.solvers.interior_point.equilibration import solve_in_units, units_of
from forewise.solvers.interior_point.loose_bounds import loose_limits, solve_with_nearer_bounds
from forewise.solvers.interior_point.verification import ACCEPTED, Residuals, polish, screen
from forewise.solvers.interior_point.warm_start import start_of, start_points
from forewise.solvers.solution import Certificate, Duals, Solution, Status, only


@dataclass(frozen=True, repr=False)
class InteriorPointSolver(ProgramSolver):
    """A primal–dual interior-point method that eliminates the scenarios one by one.

    Work and memory grow linearly in the number of scenarios, contexts do not touch each other,
    and solutions can be differentiated. Where several decisions are optimal it gives the centre
    of them all. Solving happens on the processor: tensors of another device are copied there and
    back.

    Parameters
    ----------
    tolerance : float
        Of the residuals, in units of the program's own size; the relative gap must fall a
        thousand times lower, but in a linear program where that takes many steps. A context that
        ends above 1e-8 in the user's data is not optimal.
    max_iterations : int
        Of all that is tried for a context.
    time_limit : float
        Seconds for all contexts of a batch. One that is not solved by then is `Status.STOPPED`.
    log : callable, optional
        Is called with every `Iteration` of every path: ``log=print``. Ctrl-C is heard either way.
    smoothing : float
        How far from its solution a *linear* program is differentiated: the relative gap of the
        point of the central path that gives the gradient. 0 takes the exact solution's, which
        says little at a vertex. Decisions and the objective's gradient are exact either way, and
        so are gradients where only right-hand sides have some.
    start : Solution, optional
        Near which paths begin: that of a program alike, as `solve(..., start=solution)` gives it.

    Examples
    --------
    >>> import forewise as fw
    >>> problem = fw.Portfolio([1.0, 0.5], minimum_return=1.0, budget=1.5)
    >>> scenarios = fw.datasets.pop(3, n_assets=2).true_scenarios(200)
    >>> solution = fw.solve(problem, scenarios, fw.InteriorPointSolver(time_limit=5.0))
    >>> bool((solution.gap < 1e-8).all())
    True

    Gradients reach the scenarios: what would a larger demand do to the decision?

    >>> import torch
    >>> demand = torch.tensor([[[1.0], [2.0], [4.0]]], requires_grad=True)
    >>> fw.solve(fw.Newsvendor(1.0, 1.0), fw.Scenarios(demand)).decision.sum().backward()
    >>> demand.grad.flatten()
    tensor([0., 1., 0.])
    """

    tolerance: float = 1e-9
    max_iterations: int = 200
    smoothing: float = 1e-3
    time_limit: float = math.inf
    log: Callable[[Iteration], object] | None = None
    start: Solution | None = None

    def __post_init__(self) -> None:
        if not 0 < self.tolerance <= ACCEPTED:
            raise InvalidInputError(
                f"tolerance must be positive and at most {ACCEPTED:g}, but is {self.tolerance!r}"
            )
        if self.max_iterations < 1:
            raise InvalidInputError(
                f"max_iterations must be at least 1, but is {self.max_iterations!r}"
            )
        if not self.time_limit > 0:
            raise InvalidInputError(f"time_limit must be positive, but is {self.time_limit!r}")
        if not 0 <= self.smoothing < 1:
            raise InvalidInputError(
                f"smoothing must be at least 0 and below 1, but is {self.smoothing!r}"
            )

    def starting_from(self, start: Solution) -> Self:
        """The solver, with paths that begin near a solution."""
        return replace(self, start=start)

    def solve_program(self, program: ScenarioProgram) -> Solution:
        """Solve every context of a program; failures are statuses, not exceptions."""
        watch = Watch(time.monotonic() + self.time_limit, self.log)
        start = None if self.start is None else start_points(program, self.start)
        bounds = BoundRows.of(program) if program.bounds else None
        rows = program if bounds is None else bounds.added(program)
        arrays = as_arrays(rows)
        limits = loose_limits(rows, arrays)
        if limits is not None:
            solve = partial(self._solve_in_units, watch=watch, start=start)
            found = solve_with_nearer_bounds(rows, limits, solve)
        else:
            # As `_solve_in_units`, with one frame less for most programs.
            units = units_of(arrays)
            if units is None:
                found = self._solve(rows, arrays, start, watch)
            else:
                found = solve_in_units(rows, units, partial(self._solve, watch=watch), start)
        return found if bounds is None else with_duals_of_bounds(bounds, found)

    def _solve_in_units(
        self, program: ScenarioProgram, watch: Watch, start: Points | None
    ) -> Solution:
        if start is not None and len(start.z) != program.n_contexts:
            start = None  # a second try of some contexts
        arrays = as_arrays(program)
        units = units_of(arrays)
        if units is None:
            return self._solve(program, arrays, start, watch)
        return solve_in_units(program, units, partial(self._solve, watch=watch), start)

    def _solve(
        self, program: ScenarioProgram, arrays: ProgramArrays, start: Points | None, watch: Watch
    ) -> Solution:
        screened = screen(arrays)
        good = [i for i, status in enumerate(screened) if status is None]
        if len(good) < len(screened):
            unsolved = Solution.unsolved(program, screened)
            if not good:
                return unsolved
            contexts = torch.tensor(good, device=program.weights.device)
            part = program.take(contexts)
            some = start_of(start, good)
            return unsolved.with_contexts(good, self._solve(part, as_arrays(part), some, watch))
        targets = self._gradient_targets(program, arrays)
        settings = (self.tolerance, self.max_iterations)
        path = Path(*follow_paths(arrays, *settings, targets, watch, start))
        residuals = polish(program, arrays, path)
        accepted = (residuals.worst <= ACCEPTED).tolist()
        failed = [i for i, ok in enumerate(accepted) if not ok]
        stopped = path.ended == STOPPED
        status = [Status.OPTIMAL if ok else Status.INACCURATE for ok in accepted]
        for i in failed:
            if stopped[i]:
                status[i] = Status.STOPPED
        failed = [i for i in failed if not stopped[i]]
        certificates = diagnose(program, path, failed, lambda alone: self._solve_one(alone, watch))
        for i, certificate in certificates.items():
            status[i] = certificate.status
        points = attach_gradients(program, path, settings)
        return assemble(program, points, residuals, path.iterations, status, certificates)

    def _gradient_targets(self, program: ScenarioProgram, arrays: ProgramArrays) -> np.ndarray:
        """The gaps on the central path where contexts are differentiated; 0 for the solution."""
        wanted = {name for name in ("weights", *BLOCKS) if program.block(name).requires_grad}
        if not torch.is_grad_enabled() or wanted <= RIGHT_SIDES:
            return np.zeros(program.n_contexts)
        P, D = (entries_of(block) for block in (arrays.P, arrays.D))
        curved = P.reshape(len(P), -1).any(1) | D.reshape(len(D), -1).any(1)
        return np.where(np.broadcast_to(curved, program.n_contexts), 0.0, self.smoothing)

    def _solve_one(self, alone: ScenarioProgram, watch: Watch) -> ExtensivePoint:
        arrays = as_arrays(alone)
        settings = (self.tolerance, self.max_iterations)
        path = Path(*follow_paths(arrays, *settings, np.zeros(1), watch))
        polish(alone, arrays, path)
        return load_point(extensive_form(alone, 0), path.solutions.points)


def assemble(
    program: ScenarioProgram,
    x: TensorPoints,
    residuals: Residuals,
    iterations: np.ndarray,
    status: list[Status],
    certificates: Mapping[int, Certificate],
) -> Solution:
    """Make a solution of points, with NaN and no gradient where a context is not optimal."""
    device = program.weights.device
    optimal = torch.tensor([s is Status.OPTIMAL for s in status], device=device)
    z, u, first, scenario, nu, nus = (only(optimal, part) for part in x)
    return Solution(
        decision=z,
        recourse=u,
        objective=optimal_value(program, x, optimal),
        duals=Duals(first, nu, scenario, nus),
        status=tuple(status),
        primal_residual=residuals.primal,
        dual_residual=residuals.dual,
        gap=residuals.gap,
        iterations=torch.from_numpy(iterations).to(device),
        certificates=certificates,
    )
