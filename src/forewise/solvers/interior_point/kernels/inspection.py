"""What the core says of a program without solving it: evidence for points, structure, units.

The evidence is from raw data: nothing in `src/core/evidence.cpp` uses the scaled program, the
workspace or anything else that solving uses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forewise import _core
from forewise.solvers.interior_point.kernels.arrays import Points, ProgramArrays

Array = np.ndarray


class Evidence(NamedTuple):
    """Sizes of what the optimality conditions are made of, each ``(n_contexts,)``."""

    violation: Array  # largest violation of a row, in units of its largest coefficient
    slope: Array  # violation of stationarity in z, and in u_j summed over the scenarios
    shadow: Array  # b'λ + e'ν over all stages
    curved: Array  # z'P z + Σ_j w_j u_j'D_j u_j
    linear: Array  # q'z + Σ_j w_j d_j'u_j
    length: Array  # a typical distance from the origin to a row's boundary
    size: Array  # of the variables
    cost_size: Array  # of the costs' gradients


def weigh(p: ProgramArrays, x: Points) -> Evidence:
    """The evidence for or against the points of all contexts; NaN where a point is not finite."""
    found = Evidence(*(np.zeros(len(x.z)) for _ in Evidence._fields))
    _core.weigh(p, Points(*(np.ascontiguousarray(part) for part in x)), found)
    return found


class Structure(NamedTuple):
    """What is where in a scenario's rows."""

    own: Array  # (r,) the simple variable of each row, −1 if it has none
    linking: Array  # (links,) the linking variables
    starts: Array  # (r + 1,) where each row's linking entries begin and end
    leads: Array  # (r,) the first shared row that is the same but for its own variable and its sign
    elimination: dict[str, Any]  # of the linking ones: sizes of the factor, its work, memory


def structure(p: ProgramArrays) -> Structure:
    """The structure of a batch of programs."""
    found = _core.describe(p)
    own, linking, starts, leads = (
        np.array(found.pop(name), int) for name in ("own", "linking", "starts", "leads")
    )
    return Structure(own, linking, starts, leads, found)


def units(p: ProgramArrays) -> Array:
    """What one unit of length and of cost is in each context's scaled program, ``(B, 2)``."""
    found = np.zeros((len(p.weights), 2))
    _core.units(p, found)
    return found
