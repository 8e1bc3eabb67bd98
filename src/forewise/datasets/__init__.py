"""Data to learn and judge decisions on: the paper's generators, and loaders of real data.

`base` is what every data set is, `synthetic` the generators, `cnnpred` the paper's real data,
`paper` the problems and splits of its experiments. `bakeries` and `electricity` are tables of real
demand, and contexts made of them; `oven` has the stores' days, `real` the problems that they are
judged by. `sources` lists the files of real data, `files` finds them, `fetching` gets them and
`reading` checks them. Knows problems and features, but no solver and no learning.
"""

from forewise.datasets.bakeries import bakery, bakery_contexts
from forewise.datasets.base import Conditional, Dataset, Split
from forewise.datasets.electricity import Victoria, victoria, victoria_contexts
from forewise.datasets.files import Availability, CorruptDataError, available, locate
from forewise.datasets.paper import (
    nv_problem,
    nvqp_problem,
    paper_split,
    pop2_problem,
    pop_problem,
)
from forewise.datasets.sources import SOURCES, Source
from forewise.datasets.synthetic import mean_wave, nv1, nv2, nvqp, pop

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
    "paper_split",
    "pop",
    "pop2_problem",
    "pop_problem",
    "victoria",
    "victoria_contexts",
]
