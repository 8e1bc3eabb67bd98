"""The blocks of a program as arrays, as every kernel gets them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forewise.problems.programs import BLOCKS, ScenarioProgram

Array = np.ndarray


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


def as_arrays(program: ScenarioProgram) -> ProgramArrays:
    """The program's blocks as contiguous arrays on the host."""
    blocks = {
        name: np.ascontiguousarray(getattr(program, name).detach().cpu().numpy())
        for name in ("weights", *BLOCKS)
        if name != "c"
    }
    return ProgramArrays(**blocks)
