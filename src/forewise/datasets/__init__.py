"""Data to learn and evaluate decisions on: the paper's generators, and loaders of real data.

`base` has the `Dataset`, `synthetic` the generators and the paper's problems, `bakeries` and
`electricity` tables of real demand with contexts made of them; `files` finds their files and
`reading` checks them. `shops` makes up a planner's table. No data come with forewise. Knows
problems and features, but no solver and no learning.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from forewise.datasets.base import Conditional, Dataset, Split
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

if TYPE_CHECKING:
    from forewise.datasets.bakeries import bakery, bakery_contexts
    from forewise.datasets.electricity import Victoria, victoria, victoria_contexts
    from forewise.datasets.shops import shop_demand

# Loaders need pandas, which generators do not: they are imported when they are first used.
_LOADERS = {
    "bakery": "bakeries",
    "bakery_contexts": "bakeries",
    "shop_demand": "shops",
    "Victoria": "electricity",
    "victoria": "electricity",
    "victoria_contexts": "electricity",
}

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
    "shop_demand",
    "victoria",
    "victoria_contexts",
]


def __getattr__(name: str) -> Any:
    if name not in _LOADERS:
        raise AttributeError(f"module 'forewise.datasets' has no attribute {name!r}")
    return getattr(import_module(f"forewise.datasets.{_LOADERS[name]}"), name)
