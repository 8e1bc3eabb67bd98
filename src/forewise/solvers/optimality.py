"""The optimality conditions of a program, recomputed from its raw data.

Nothing here is taken from a solver, and "optimal" is only said where these residuals hold.
May import: problems, `solution`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from forewise.problems.program import ScenarioProgram, apply, apply_transposed
from forewise.solvers.solution import Duals

#: A context is optimal only if all its relative residuals are at most this.
ACCEPTED = 1e-8

_RIGHT_SIDES = ("h", "e", "r", "s")


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


@torch.no_grad()
def residuals(
    program: ScenarioProgram, z: torch.Tensor, u: torch.Tensor, duals: Duals
) -> Residuals:
    """Recompute the optimality conditions of a batch."""
    weights = program.weights.unsqueeze(-1)
    Pz, Du = apply(program.P, z), apply(program.D, u)
    norms = row_norms(program)
    reach, steepness = natural_sizes(program, norms)
    size = torch.maximum(reach, torch.maximum(largest(z), largest(u)))
    primal = violation(program, z, u, norms) / size
    cost_size = torch.maximum(steepness, torch.maximum(largest(Pz), largest(Du)))
    dual = slope(program, Pz, Du, duals, norms) / cost_size
    curved = (z * Pz).sum(-1) + (weights * u * Du).sum((1, 2))
    linear = (program.q * z).sum(-1) + (weights * program.d * u).sum((1, 2))
    scale = torch.maximum((0.5 * curved + linear).abs(), 0.1 * cost_size * size)
    gap = (curved + linear + shadow_cost(program, duals)).abs() / scale
    return Residuals(primal, dual, gap)


def natural_sizes(
    program: ScenarioProgram, norms: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """How long a solution and how steep a cost is to be expected from the data, both positive.

    The length is that of the rows; where all of them pass through the origin, it is where the
    quadratic cost outweighs the linear one. A cost without a linear part is as steep as its
    quadratic part there. Both are needed where the solution itself is 0 and tells no size.
    """
    linear = torch.maximum(largest(program.q), largest(program.d))
    curvature = torch.maximum(largest(program.P), largest(program.D))
    reach = length(program, norms)
    bend = (linear / _or_one(curvature)).expand_as(reach)
    reach = torch.where(reach > 0, reach, torch.where(curvature > 0, bend, 0.0))
    reach = _or_one(reach)
    steepness = torch.where(linear > 0, linear, curvature * reach)
    return reach, _or_one(steepness)


def violation(
    program: ScenarioProgram, z: torch.Tensor, u: torch.Tensor, norms: dict[str, torch.Tensor]
) -> torch.Tensor:
    """Largest violation of a row, in units of its largest coefficient, ``(n_contexts,)``."""
    kept = (program.weights > 0).unsqueeze(-1)
    n_coupled = program.T.shape[-2]
    scenario = apply(program.W, u)
    scenario[..., :n_coupled] += _coupled(program.T, z)
    violations = {
        "h": (apply(program.G, z) - program.h).clamp_min(0),
        "e": apply(program.E, z) - program.e,
        "r": (scenario - program.r).clamp_min(0) * kept,
        "s": (_coupled(program.F, z) + apply(program.V, u) - program.s) * kept,
    }
    worst = z.new_zeros(len(z))
    for name, amount in violations.items():
        worst = torch.maximum(worst, largest(amount / norms[name]))
    return worst


def slope(
    program: ScenarioProgram,
    Pz: torch.Tensor,
    Du: torch.Tensor,
    duals: Duals,
    norms: dict[str, torch.Tensor],
) -> torch.Tensor:
    """Violation of stationarity in z, and in u_j summed over the scenarios, ``(n_contexts,)``.

    A multiplier of the wrong sign counts by its size.
    """
    n_coupled = program.T.shape[-2]
    of_z = Pz + program.q + apply_transposed(program.G, duals.inequality)
    of_z = of_z + apply_transposed(program.E, duals.equality)
    of_z = of_z + _coupled_sum(program.T, duals.scenario_inequality[..., :n_coupled])
    of_z = of_z + _coupled_sum(program.F, duals.scenario_equality)
    of_u = program.weights.unsqueeze(-1) * (Du + program.d)
    of_u = of_u + apply_transposed(program.W, duals.scenario_inequality)
    of_u = of_u + apply_transposed(program.V, duals.scenario_equality)
    wrong = (-duals.inequality).clamp_min(0) * norms["h"]
    wrong_scenario = (-duals.scenario_inequality).clamp_min(0) * norms["r"]
    in_z = torch.maximum(largest(of_z), largest(wrong))
    return torch.maximum(in_z, torch.maximum(sum_of_largest(of_u), sum_of_largest(wrong_scenario)))


def shadow_cost(program: ScenarioProgram, duals: Duals) -> torch.Tensor:
    """b'λ + e'ν over all stages, ``(n_contexts,)``."""
    first = (program.h * duals.inequality).sum(-1) + (program.e * duals.equality).sum(-1)
    scenario = (program.r * duals.scenario_inequality).sum((1, 2))
    return first + scenario + (program.s * duals.scenario_equality).sum((1, 2))


def length(program: ScenarioProgram, norms: dict[str, torch.Tensor]) -> torch.Tensor:
    """A typical distance from the origin to a row's boundary, ``(n_contexts,)``.

    The geometric mean over the rows that do not pass through it: a bound that is far away on
    purpose then says little. 0 where all pass through the origin.
    """
    logs = program.weights.new_zeros(program.n_contexts)
    counts = program.weights.new_zeros(program.n_contexts)
    kept = program.weights > 0
    for name in _RIGHT_SIDES:
        distance = (getattr(program, name).detach() / norms[name]).abs()
        if distance.ndim == 3:
            distance = torch.where(kept.unsqueeze(-1), distance, 0.0)
        distance = distance.flatten(1)
        off = distance > 0
        logs = logs + torch.where(off, distance, 1.0).log().sum(1)
        counts = counts + off.sum(1)
    return torch.where(counts > 0, (logs / counts.clamp_min(1)).exp(), 0.0)


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


def sum_of_largest(values: torch.Tensor) -> torch.Tensor:
    """Σ_j of the largest absolute value in scenario j: ``(B, M, k)`` to ``(B,)``."""
    return values.abs().amax(2).sum(1) if values.shape[2] else values.new_zeros(len(values))


def _or_one(size: torch.Tensor) -> torch.Tensor:
    """What to divide by: a size, or 1 where there is none (a program without costs, say)."""
    return torch.where(size > 0, size, 1.0)


def _row_maximum(block: torch.Tensor) -> torch.Tensor:
    block = block.detach()
    return block.abs().amax(-1) if block.shape[-1] else block.new_zeros(block.shape[:-1])


def _coupled(block: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """Block_j z of every scenario, ``(B, M | 1, rows)``."""
    if block.shape[1] == 1:
        return apply(block[:, 0], z).unsqueeze(1)
    return apply(block.flatten(1, 2), z).unflatten(1, block.shape[1:3])


def _coupled_sum(block: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Σ_j block_j' rows_j, ``(B, n_z)``."""
    if block.shape[1] == 1:
        return apply_transposed(block[:, 0], rows.sum(1))
    # Contiguous, because a batched product of strided rows falls back to a loop.
    return apply_transposed(block.flatten(1, 2), rows.flatten(1).contiguous())
