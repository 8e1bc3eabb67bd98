"""What the core finds in a batch's blocks, before it solves them (`src/core/plan.hpp`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forewise import _core
from forewise.solvers.interior_point.kernels.arrays import ProgramArrays

Array = np.ndarray


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
