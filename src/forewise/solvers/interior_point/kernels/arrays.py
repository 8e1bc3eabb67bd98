"""What goes into the kernels and comes out: blocks, points of a batch, how paths ended."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forewise.problems.programs import BLOCKS, ScenarioProgram

Array = np.ndarray

# How a path ended; `src/core/path.hpp` has the same numbers.
CONVERGED = 1
STALLED = 2
PRIMAL_RAY = 3  # the variables diverge along a ray of falling cost: unbounded
DUAL_RAY = 4  # the multipliers diverge along a proof that nothing is feasible
LOST = 5  # the centre that was looked for is far away, or nowhere

#: Share of the largest distance below which a right-hand side may be rounding noise.
NOISE = 1e-9


class ProgramArrays(NamedTuple):
    """The blocks of a `ScenarioProgram` as arrays; its module has the legend."""

    weights: Array
    q: Array
    P: Array
    G: Array
    h: Array
    E: Array
    e: Array
    d: Array
    D: Array
    T: Array
    W: Array
    r: Array
    F: Array
    V: Array
    s: Array


class Points(NamedTuple):
    """Points of all contexts, in the user's units; scenarios of weight zero hold zeros."""

    z: Array  # (B, n_z)
    u: Array  # (B, M, n_u)
    first: Array  # inequality rows of the first stage (B, n_g)
    scenario: Array  # inequality rows of the scenarios (B, M, n_r)
    nu: Array  # (B, n_e)
    nus: Array  # (B, M, n_s)


def as_arrays(program: ScenarioProgram) -> ProgramArrays:
    """The program's blocks as contiguous arrays on the host."""
    blocks = {
        name: np.ascontiguousarray(getattr(program, name).detach().cpu().numpy())
        for name in ("weights", *BLOCKS)
        if name != "c"
    }
    return ProgramArrays(**blocks)
