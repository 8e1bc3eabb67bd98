"""Where paths begin that do not begin cold: at an earlier solution of a program that was alike.

`src/core/warm.hpp` moves such a point inside, and gives it up where it does not help.
"""

from __future__ import annotations

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.bounds import BoundRows
from forewise.problems.programs import ScenarioProgram
from forewise.solvers.bounds import joined_duals
from forewise.solvers.interior_point.core import Points
from forewise.solvers.solution import Solution

_NAMES = (
    *("decision", "recourse", "multipliers of the inequalities"),
    *("multipliers of the scenarios' inequalities", "multipliers of the equalities"),
    "multipliers of the scenarios' equalities",
)


def start_points(program: ScenarioProgram, start: Solution) -> Points:
    """A solution as points of a program whose bounds are rows, with NaN where it was not optimal.

    It must have the program's contexts, scenarios, variables and rows.
    """
    plain = (program.n_contexts, program.n_scenarios)
    found = tuple(start.recourse.shape[:2])
    if found != plain:
        raise InvalidInputError(
            f"start must be a solution of {plain[0]} contexts with {plain[1]} scenarios, as the "
            f"program has, but is one of {found[0]} with {found[1]}: leave it out"
        )
    bounds = BoundRows.of(program)
    rows, duals = bounds.added(program), joined_duals(bounds, start.duals)
    sizes = ("q", "d", "h", "r", "e", "s")
    parts = (
        *(start.first_stage, start.recourse, duals.inequality, duals.scenario_inequality),
        *(duals.equality, duals.scenario_equality),
    )
    points = []
    for name, block, part in zip(_NAMES, sizes, parts, strict=True):
        size = getattr(rows, block).shape[-1]
        if part.shape[-1] != size:
            raise InvalidInputError(
                f"start must be a solution of a program with as many variables, rows and bounds: "
                f"its {name} are {part.shape[-1]}, but the program needs {size}"
            )
        points.append(np.ascontiguousarray(part.detach().cpu().double().numpy()))
    return Points(*points)


def start_of(start: Points | None, contexts: list[int]) -> Points | None:
    """The points of some contexts."""
    return start and Points(*(part[contexts] for part in start))


def start_in_units(start: Points | None, z: torch.Tensor, u: torch.Tensor) -> Points | None:
    """Points of a program in other units of its variables, ``(B, n_z)`` and ``(B, 1, n_u)``."""
    if start is None:
        return None
    return start._replace(z=start.z / z.cpu().numpy(), u=start.u / u.cpu().numpy())
