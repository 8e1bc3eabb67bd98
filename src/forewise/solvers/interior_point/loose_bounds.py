"""Bounds that are as good as none, such as 1e12 beside decisions around 1: brought nearer.

Such a bound would be taken for the size of the program, and everything else for rounding. The
program is solved with nearer bounds in their place. A solution that stays clear of these is one of
the program as it was, because it is convex; where it does not, or there is none, the program is
solved as it was.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from forewise.problems.programs import ScenarioProgram, apply
from forewise.problems.sparse import SparseBlock
from forewise.solvers.interior_point.core import ProgramArrays, entries_of
from forewise.solvers.solution import Solution, Status

Solve = Callable[[ScenarioProgram], Solution]
#: What h (B | 1, g) and r (B | 1, 1, r) must not exceed; infinity where they may.
Limits = tuple[torch.Tensor, torch.Tensor]

_LOOSE = 2.0**24  # times as far as the next nearer boundary: as good as none
_NEARER = 2.0**16  # times as far as that one is what takes its place


def solve_with_nearer_bounds(program: ScenarioProgram, limits: Limits, solve: Solve) -> Solution:
    """Solve a program whose loose bounds must not count, with `limits` from `loose_limits`.

    `solve` must treat every context alone.
    """
    first, scenario = limits
    nearer = {"h": torch.minimum(program.h, first), "r": torch.minimum(program.r, scenario)}
    solution = solve(program.map(lambda name, block: nearer.get(name, block)))
    clear = torch.tensor([status is Status.OPTIMAL for status in solution.status])
    clear &= _stays_clear(program, solution, first, scenario).cpu()
    touched = first.isfinite().any(1) | scenario.isfinite().flatten(1).any(1)
    again = (touched.expand(len(clear)).cpu() & ~clear).nonzero().flatten().tolist()
    if not again:
        return solution
    contexts = torch.tensor(again, device=program.weights.device)
    return solution.with_contexts(again, solve(program.take(contexts)))


def loose_limits(program: ScenarioProgram, arrays: ProgramArrays) -> Limits | None:
    """What h and r must not exceed in place of loose bounds; `arrays` are the program's.

    None where no bound is loose. A boundary that has the origin on its outer side, or an equation,
    says that the solution is that large, and then no bound of the context is.
    """
    if not _far_apart(arrays):
        return None
    rights = [getattr(program, name).detach() for name in "hers"]
    if not any(bool((part > 0).any()) for part in (rights[0], rights[2])):
        return None  # no bound is away from the origin
    right = _side_by_side([_over_scenarios(part.abs(), 2) for part in rights])
    G, E, T, W, F, V = (_row_sizes(program.block(name)) for name in "GETWFV")
    T = torch.nn.functional.pad(T, (0, W.shape[1] - T.shape[1]))
    sizes = _side_by_side([G, E, torch.maximum(T, W), torch.maximum(F, V)])
    distances = torch.where((right > 0) & (sizes > 0), right / sizes, torch.nan)
    far = distances.nan_to_num(0.0, 0.0, 0.0).sort(1, descending=True).values
    jumps = (far[:, 1:] > 0) & (far[:, :-1] >= _LOOSE * far[:, 1:])
    if not bool(jumps.any()):
        return None
    nearest = far[:, 1:].gather(1, jumps.int().argmax(1, keepdim=True))
    loose = (distances >= _LOOSE * nearest) & jumps.any(1, keepdim=True)
    widths = [part.shape[-1] for part in rights]
    h, e, r, s = loose.split(widths, 1)
    of_h, _, of_r, _ = (_NEARER * nearest * sizes).split(widths, 1)
    lowest = rights[2].amin(1) if r.shape[1] else of_r
    outside = (h & (rights[0] < -of_h)).any(1) | (r & (lowest < -of_r)).any(1)
    kept = ~(outside | e.any(1) | s.any(1))[:, None]
    if not bool((loose & kept).any()):
        return None
    scenario = torch.where(r & kept, of_r, torch.inf)
    return torch.where(h & kept, of_h, torch.inf), scenario.unsqueeze(1)


def _far_apart(arrays: ProgramArrays) -> bool:
    """Whether the sizes of the numbers leave room for a loose bound: a fast first look."""
    sides = _smallest_and_largest([arrays.h, arrays.e, arrays.r, arrays.s])
    matrices = (arrays.G, arrays.E, arrays.T, arrays.W, arrays.F, arrays.V)
    coefficients = _smallest_and_largest([entries_of(block) for block in matrices])
    # Not a quotient: numbers may be as small as they like.
    return sides[1] * coefficients[1] >= _LOOSE * sides[0] * coefficients[0]


def _smallest_and_largest(blocks: list[np.ndarray]) -> tuple[float, float]:
    """Of the absolute values that are not 0; NaN counts as far from everything."""
    smallest, largest = np.inf, 0.0
    for block in blocks:
        sizes = np.abs(block)
        most = float(sizes.max(initial=0.0))
        if most > 0.0:
            least = float(sizes.min())
            least = least if least > 0.0 else float(sizes[sizes > 0.0].min())
            smallest, largest = min(smallest, least), max(largest, most)
        elif most != most:
            return 0.0, np.inf
    return (smallest, largest) if largest > 0.0 else (1.0, 1.0)


def _row_sizes(block: torch.Tensor | SparseBlock) -> torch.Tensor:
    """The largest coefficient of each row in all scenarios, ``(B | 1, rows)``."""
    if not isinstance(block, SparseBlock):
        found = block.detach().abs()
        found = found.amax(-1) if found.shape[-1] else found.new_zeros(found.shape[:-1])
        return _over_scenarios(found, 2)
    entries = _over_scenarios(block.entries.detach().abs(), 2)
    rows = block.rows.to(entries.device).expand_as(entries)
    return entries.new_zeros(len(entries), block.size[0]).scatter_reduce(1, rows, entries, "amax")


def _over_scenarios(values: torch.Tensor, ndim: int) -> torch.Tensor:
    """The largest over the scenarios, where there are some."""
    return values if values.ndim == ndim else values.amax(1)


def _side_by_side(parts: list[torch.Tensor]) -> torch.Tensor:
    lead = max(len(part) for part in parts)
    return torch.cat([part.expand(lead, -1) for part in parts], 1)


def _stays_clear(
    program: ScenarioProgram, solution: Solution, first: torch.Tensor, scenario: torch.Tensor
) -> torch.Tensor:
    """Mask of the contexts ``(B,)`` that are far from the bounds in place of loose ones."""
    z, u = solution.decision.detach(), solution.recourse.detach()
    with torch.no_grad():
        clear = (apply(program.block("G"), z) <= 0.5 * first).all(1)
        if scenario.isfinite().any():
            rows = apply(program.block("W"), u)
            known = apply(program.block("T"), z.unsqueeze(1))
            rows = rows + torch.nn.functional.pad(known, (0, rows.shape[-1] - known.shape[-1]))
            clear &= (rows <= 0.5 * scenario).flatten(1).all(1)
    return clear
