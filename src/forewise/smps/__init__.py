"""Stochastic programs in SMPS, the format of the classic test sets: a core program, its two stages
and the distribution of its random elements, in three files.

`read` makes a `TwoStageProgram` of them and `write` puts one back; `lines` cuts files into fields,
`core`, `periods` and `stochastic` read one file each. The room may import what is below the
solvers, and solves nothing.
"""

from forewise.smps.core import Core
from forewise.smps.distribution import Continuous, Discrete, Element, Place
from forewise.smps.reading import read
from forewise.smps.two_stage import Realised, TwoStageProgram
from forewise.smps.writing import write

__all__ = [
    "Continuous",
    "Core",
    "Discrete",
    "Element",
    "Place",
    "Realised",
    "TwoStageProgram",
    "read",
    "write",
]
