"""Contexts that need no solving, because their data say that it would be in vain.

May import: problems, its siblings `base`, `solution`.
"""

from __future__ import annotations

import torch

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.base import valid_contexts
from forewise.solvers.solution import Status


def screen(program: ScenarioProgram) -> list[Status | None]:
    """Status of the contexts that need no solving: bad data, or a cost that is not convex."""
    valid = valid_contexts(program)
    convex = torch.ones_like(valid)
    for block in (program.P, program.D):
        convex &= _positive_semidefinite(block.detach())
    if bool((valid & convex).all()):
        return [None] * program.n_contexts
    return [
        Status.INVALID if not ok else None if curved_up else Status.NONCONVEX
        for ok, curved_up in zip(valid.tolist(), convex.tolist(), strict=True)
    ]


def _positive_semidefinite(block: torch.Tensor) -> torch.Tensor:
    """Mask of the contexts whose matrices are positive semidefinite, ``(B | 1,)``."""
    if not block.any():
        return torch.ones(block.shape[0], dtype=torch.bool, device=block.device)
    diagonal = block.diagonal(dim1=-2, dim2=-1)
    finite = block.nan_to_num(0.0, 0.0, 0.0)
    smallest = diagonal.amin(-1)
    if (block - torch.diag_embed(diagonal)).any():
        smallest = torch.linalg.eigvalsh(finite)[..., 0]
    convex = smallest >= -1e-9 * finite.abs().amax((-2, -1))
    return convex.flatten(1).all(1) if convex.ndim > 1 else convex
