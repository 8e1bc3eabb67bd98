"""Data of the paper's and the real experiments: loaders, downloads, problems, contexts."""

from forewise_lab.datasets.cnnpred import pop2_paper, pop2_strict
from forewise_lab.datasets.fetching import fetch
from forewise_lab.datasets.paper import paper_split, pop2_problem
from forewise_lab.datasets.real import (
    StoreDays,
    bakery_newsvendor,
    bakery_store_days,
    day_ahead_problem,
    oven_problem,
)

__all__ = [
    "StoreDays",
    "bakery_newsvendor",
    "bakery_store_days",
    "day_ahead_problem",
    "fetch",
    "oven_problem",
    "paper_split",
    "pop2_paper",
    "pop2_problem",
    "pop2_strict",
]
