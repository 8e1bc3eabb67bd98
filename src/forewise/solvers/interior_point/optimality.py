"""The optimality conditions of a program, recomputed from its raw data.

Nothing here is taken from a solver, and "optimal" is only said where these residuals hold.
May import: problems, `solution`, and of `kernels` those that look at raw data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.interior_point.kernels.arrays import ProgramArrays, as_arrays
from forewise.solvers.interior_point.kernels.evidence import Evidence as Weighed
from forewise.solvers.interior_point.kernels.evidence import weigh
from forewise.solvers.interior_point.kernels.points import Points
from forewise.solvers.solution import Duals

Array = np.ndarray

#: A context is optimal only if all its relative residuals are at most this.
ACCEPTED = 1e-8


@dataclass(frozen=True, eq=False)
class Residuals:
    """Relative residuals of a batch, each ``(n_contexts,)``; `Solution` says relative to what."""

    primal: torch.Tensor
    dual: torch.Tensor
    gap: torch.Tensor

    @property
    def worst(self) -> torch.Tensor:
        """The largest of the three, NaN counting as infinite."""
        worst = torch.maximum(torch.maximum(self.primal, self.dual), self.gap)
        return torch.where(worst.isnan(), torch.inf, worst)


class Evidence(NamedTuple):
    """`kernels.evidence.Evidence` as tensors, each ``(n_contexts,)``; that has the meanings."""

    violation: torch.Tensor
    slope: torch.Tensor
    shadow: torch.Tensor
    curved: torch.Tensor
    linear: torch.Tensor
    length: torch.Tensor
    size: torch.Tensor
    cost_size: torch.Tensor


def residuals(
    program: ScenarioProgram, z: torch.Tensor, u: torch.Tensor, duals: Duals
) -> Residuals:
    """Recompute the optimality conditions of a batch."""
    return residuals_of_points(as_arrays(program), _as_points(z, u, duals), z.device)


def residuals_of_points(p: ProgramArrays, points: Points, device: torch.device) -> Residuals:
    """`residuals` of points that are arrays, as solving leaves them."""
    found = weigh(p, points)
    # Numbers near the largest that float64 holds end as infinity or NaN, which nothing accepts.
    with np.errstate(over="ignore", invalid="ignore"):
        return _relative(p, found, device)


def _relative(p: ProgramArrays, found: Weighed, device: torch.device) -> Residuals:
    reach, steepness = _natural_sizes(p, found.length)
    size, cost_size = np.maximum(reach, found.size), np.maximum(steepness, found.cost_size)
    scale = np.abs(0.5 * found.curved + found.linear)
    scale = np.maximum(scale, 0.1 * cost_size * size)
    primal, dual = found.violation / size, found.slope / cost_size
    gap = np.abs(found.curved + found.linear + found.shadow) / scale
    return Residuals(*(torch.from_numpy(part).to(device) for part in (primal, dual, gap)))


def _natural_sizes(p: ProgramArrays, length: Array) -> tuple[Array, Array]:
    """How long a solution and how steep a cost is to be expected from the data, both positive.

    The length is that of the rows; where all of them pass through the origin, it is where the
    quadratic cost outweighs the linear one. A cost without a linear part is as steep as its
    quadratic part there. Both are needed where the solution itself is 0 and tells no size.
    """
    linear = np.maximum(_largest(p.q), _largest(p.d))
    if (length > 0).all() and (linear > 0).all():
        return length, linear
    curvature = np.maximum(_largest(p.P), _largest(p.D))
    bend = np.where(curvature > 0, linear / _or_one(curvature), 0.0)
    reach = _or_one(np.where(length > 0, length, bend))
    return reach, _or_one(np.where(linear > 0, linear, curvature * reach))


def evidence(program: ScenarioProgram, z: torch.Tensor, u: torch.Tensor, duals: Duals) -> Evidence:
    """What the optimality conditions say of points and multipliers of all contexts."""
    found = weigh(as_arrays(program), _as_points(z, u, duals))
    return Evidence(*(torch.from_numpy(part).to(z.device) for part in found))


def row_norms(program: ScenarioProgram) -> dict[str, torch.Tensor]:
    """Largest coefficient of each row, under the name of its right-hand side; 1 for a zero row.

    Shaped like the right-hand sides: ``(B | 1, rows)`` or ``(B | 1, M | 1, rows)``.
    """
    coupled, scenario = _row_maximum(program.T), _row_maximum(program.W)
    lead = torch.broadcast_shapes(coupled.shape[:2], scenario.shape[:2])
    missing = scenario.shape[-1] - coupled.shape[-1]
    coupled = torch.nn.functional.pad(coupled, (0, missing)).expand(*lead, -1)
    norms = {
        "h": _row_maximum(program.G),
        "e": _row_maximum(program.E),
        "r": torch.maximum(coupled, scenario.expand(*lead, -1)),
        "s": torch.maximum(_row_maximum(program.F), _row_maximum(program.V)),
    }
    return {name: torch.where(norm > 0, norm, 1.0) for name, norm in norms.items()}


def largest(values: torch.Tensor) -> torch.Tensor:
    """Largest absolute value of each context, ``(B | 1,)``; 0 where there is none."""
    flat = values.detach().flatten(1)
    return flat.abs().amax(1) if flat.shape[1] else flat.new_zeros(flat.shape[0])


def _largest(values: Array) -> Array:
    """`largest` of arrays."""
    return np.abs(values.reshape(len(values), -1)).max(1, initial=0.0)


def _or_one(size: Array) -> Array:
    """What to divide by: a size, or 1 where there is none (a program without costs, say)."""
    return np.where(size > 0, size, 1.0)


def _row_maximum(block: torch.Tensor) -> torch.Tensor:
    block = block.detach()
    return block.abs().amax(-1) if block.shape[-1] else block.new_zeros(block.shape[:-1])


def _as_points(z: torch.Tensor, u: torch.Tensor, duals: Duals) -> Points:
    return Points(
        z=_as_array(z),
        u=_as_array(u),
        first=_as_array(duals.inequality),
        scenario=_as_array(duals.scenario_inequality),
        nu=_as_array(duals.equality),
        nus=_as_array(duals.scenario_equality),
    )


def _as_array(values: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(values.detach().cpu().numpy())
