"""What the optimality conditions say of given points, from a program's raw data.

Nothing in `src/core/evidence.cpp` uses the scaled program, the workspace or anything else that
solving uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forewise import _core
from forewise.solvers.interior_point.kernels.arrays import ProgramArrays
from forewise.solvers.interior_point.kernels.points import Points

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
