"""The structured interior-point solver of scenario programs.

May import: problems, and its siblings but `auto`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.programs import RIGHT_SIDES, ScenarioProgram
from forewise.solvers.base import ProgramSolver
from forewise.solvers.extensive import ExtensivePoint, extensive_form, load_point
from forewise.solvers.interior_point.diagnosis import diagnose
from forewise.solvers.interior_point.differentiation import (
    Path,
    optimal_value,
    solve_with_gradients,
)
from forewise.solvers.interior_point.equilibration import solve_equilibrated
from forewise.solvers.interior_point.kernels.arrays import as_arrays
from forewise.solvers.interior_point.kernels.batch import PathEnds, follow_paths
from forewise.solvers.interior_point.optimality import ACCEPTED, Residuals
from forewise.solvers.interior_point.polishing import polish_inaccurate
from forewise.solvers.interior_point.screening import screen
from forewise.solvers.solution import Certificate, Duals, Solution, Status
from forewise.validation.arguments import WORKING_DTYPE


@dataclass(frozen=True, repr=False)
class InteriorPointSolver(ProgramSolver):
    """A primal–dual interior-point method that eliminates the scenarios one by one.

    Prefer it for every program without a closed form: its work and memory grow linearly in the
    number of scenarios, contexts do not touch each other, and solutions can be differentiated.
    Where several decisions are optimal it gives the centre of them all.

    Solving happens on the processor: tensors of another device are copied there and back.

    Parameters
    ----------
    tolerance : float
        Of the residuals, in units of the program's own size; the relative gap must fall a
        thousand times lower. A context that ends above 1e-8 in the user's data is not optimal.
    max_iterations : int
    smoothing : float
        How far from its solution a *linear* program is differentiated: the relative gap of the
        point of the central path that gives the gradient. 0 takes the exact solution's, which
        says little where the solution is a corner. Decisions are exact either way. A corner does
        move with its right-hand sides: where no other data have gradients, they are exact.
        Where many decisions are optimal, the gradient is that of the centre of them all.
        The objective's gradient is not smoothed: it is that of the optimal value, exactly.
    """

    tolerance: float = 1e-9
    max_iterations: int = 100
    smoothing: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 < self.tolerance <= ACCEPTED:
            raise InvalidInputError(
                f"tolerance must be positive and at most {ACCEPTED:g}, but is {self.tolerance!r}"
            )
        if self.max_iterations < 1:
            raise InvalidInputError(
                f"max_iterations must be at least 1, but is {self.max_iterations!r}"
            )
        if not 0 <= self.smoothing < 1:
            raise InvalidInputError(
                f"smoothing must be at least 0 and below 1, but is {self.smoothing!r}"
            )

    def solve_program(self, program: ScenarioProgram) -> Solution:
        """Solve every context of a program; failures are statuses, not exceptions."""
        return solve_equilibrated(program, self._solve_in_units)

    def _solve_in_units(self, program: ScenarioProgram) -> Solution:
        status = screen(program)
        good = [i for i, found in enumerate(status) if found is None]
        if len(good) == len(status):
            return self._solve_screened(program)
        contexts = torch.tensor(good, dtype=torch.long, device=program.weights.device)
        # Shared blocks with bad data leave nobody; then nothing is solved.
        part = self._solve_screened(program.take(contexts)) if good else None
        return _scatter(part, contexts, status, program)

    def _solve_screened(self, program: ScenarioProgram) -> Solution:
        targets = self._gradient_targets(program)
        checked: list[Residuals] = []

        def follow(plain: ScenarioProgram) -> Path:
            path, found = self._follow(plain, targets)
            checked.append(found)
            return path

        z, u, duals, path = solve_with_gradients(program, follow, self._earlier)
        found = checked[0]
        accepted = (found.worst <= ACCEPTED).tolist()
        status = [Status.OPTIMAL if ok else Status.INACCURATE for ok in accepted]
        failed = [i for i, ok in enumerate(accepted) if not ok]
        certificates = diagnose(program, path, failed, self._solve_one) if failed else {}
        for i, certificate in certificates.items():
            status[i] = certificate.status
        return _assemble(program, z, u, duals, found, path.iterations, status, certificates)

    def _gradient_targets(self, program: ScenarioProgram) -> np.ndarray | None:
        """Where on its central path each context is differentiated; None for the solutions."""
        wanted = {name for name, block in program.blocks().items() if block.requires_grad}
        if not (torch.is_grad_enabled() and wanted) or wanted <= RIGHT_SIDES:
            return None
        curved = program.P.detach().flatten(1).any(1) | program.D.detach().flatten(1).any(1)
        targets = torch.where(curved, 0.0, self.smoothing).to(WORKING_DTYPE)
        return targets.expand(program.n_contexts).contiguous().cpu().numpy()

    def _earlier(self, program: ScenarioProgram, gap: float) -> PathEnds:
        """The points of the central path at a relative gap."""
        return self._follow(program, np.full(program.n_contexts, gap))[0].gradient_points

    def _solve_one(self, alone: ScenarioProgram) -> ExtensivePoint:
        points = self._follow(alone, None)[0].solutions.points
        return load_point(extensive_form(alone, 0), points)

    def _follow(
        self, program: ScenarioProgram, targets: np.ndarray | None
    ) -> tuple[Path, Residuals]:
        if targets is None:
            targets = np.zeros(program.n_contexts)
        arrays = as_arrays(program)
        path = Path(*follow_paths(arrays, self.tolerance, self.max_iterations, targets))
        return path, polish_inaccurate(program, arrays, path)


def _assemble(
    program: ScenarioProgram,
    z: torch.Tensor,
    u: torch.Tensor,
    duals: Duals,
    found: Residuals,
    iterations: np.ndarray,
    status: list[Status],
    certificates: dict[int, Certificate],
) -> Solution:
    """Make a solution of it, with NaN and no gradient where a context is not optimal."""
    optimal = [s is Status.OPTIMAL for s in status]

    def only_optimal(values: torch.Tensor) -> torch.Tensor:
        if all(optimal):
            return values
        mask = torch.tensor(optimal, device=z.device).reshape(-1, *(1,) * (values.ndim - 1))
        return torch.where(mask, values, torch.nan)

    mask = torch.tensor(optimal, device=z.device)
    objective = optimal_value(program, z, u, duals, mask)
    z, u = only_optimal(z), only_optimal(u)
    kept = {field.name: only_optimal(getattr(duals, field.name)) for field in fields(duals)}
    return Solution(
        decision=z,
        recourse=u,
        objective=objective,
        duals=Duals(**kept),
        status=tuple(status),
        primal_residual=found.primal,
        dual_residual=found.dual,
        gap=found.gap,
        iterations=torch.from_numpy(iterations).to(z.device),
        certificates=certificates,
    )


def _scatter(
    part: Solution | None,
    contexts: torch.Tensor,
    status: list[Status | None],
    program: ScenarioProgram,
) -> Solution:
    """Put the solved contexts back among those that were not."""
    B, M = program.weights.shape

    def spread(values: torch.Tensor | None, *shape: int) -> torch.Tensor:
        dtype = WORKING_DTYPE if values is None else values.dtype
        fill = torch.nan if dtype.is_floating_point else 0
        whole = torch.full((B, *shape), fill, dtype=dtype, device=program.weights.device)
        return whole if values is None else whole.index_copy(0, contexts, values)

    solved = iter(part.status if part else ())
    rows = {
        "inequality": (program.h.shape[-1],),
        "equality": (program.e.shape[-1],),
        "scenario_inequality": (M, program.r.shape[-1]),
        "scenario_equality": (M, program.s.shape[-1]),
    }
    duals = {n: spread(getattr(part.duals, n) if part else None, *s) for n, s in rows.items()}
    certificates = part.certificates if part else {}
    return Solution(
        decision=spread(part.decision if part else None, program.n_decisions),
        recourse=spread(part.recourse if part else None, M, program.n_recourse),
        objective=spread(part.objective if part else None),
        duals=Duals(**duals),
        status=tuple(found or next(solved) for found in status),
        primal_residual=spread(part.primal_residual if part else None),
        dual_residual=spread(part.dual_residual if part else None),
        gap=spread(part.gap if part else None),
        iterations=spread(part.iterations if part else None).nan_to_num(0).long(),
        certificates={int(contexts[i]): proof for i, proof in certificates.items()},
    )
