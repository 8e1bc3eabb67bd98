"""Data to learn and evaluate decisions on: the paper's generators, and loaders of real data.

`base` has the `Dataset`, `synthetic` the generators and the paper's problems, `bakeries` and
`electricity` tables of real demand with contexts made of them; `files` finds their files and
`reading` checks them. No data come with forewise. Knows problems and features, but no solver and
no learning.
"""

from forewise.datasets.bakeries import bakery, bakery_contexts
from forewise.datasets.base import Conditional, Dataset, Split
from forewise.datasets.electricity import Victoria, victoria, victoria_contexts
from forewise.datasets.files import (
    SOURCES,
    Availability,
    CorruptDataError,
    Source,
    available,
    locate,
)
from forewise.datasets.synthetic import (
    mean_wave,
    nv1,
    nv2,
    nv_problem,
    nvqp,
    nvqp_problem,
    pop,
    pop_problem,
)

__all__ = [
    "SOURCES",
    "Availability",
    "Conditional",
    "CorruptDataError",
    "Dataset",
    "Source",
    "Split",
    "Victoria",
    "available",
    "bakery",
    "bakery_contexts",
    "locate",
    "mean_wave",
    "nv1",
    "nv2",
    "nv_problem",
    "nvqp",
    "nvqp_problem",
    "pop",
    "pop_problem",
    "victoria",
    "victoria_contexts",
]
