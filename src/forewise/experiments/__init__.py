"""Experiments as data: settings files → fits → rows of one long results table.

`schema` and `loading` are the settings files, `kinds` their words, `methods` turns them into
learners, `grid` into fits; `fitting` computes one of them and `judging` measures it; `rows` and
`claims` are the table and who works on it, `runner` puts it all together. May import: everything
up to learners, datasets, metrics and distributed; nobody below imports it. To add an experiment:
a table in a settings file.
"""

from forewise.experiments.fitting import KEY, Fit, FitResult, compute
from forewise.experiments.grid import all_fits
from forewise.experiments.judging import InfeasibleDecisionError
from forewise.experiments.loading import Settings, load_settings
from forewise.experiments.methods import Method, paper_kl_weight
from forewise.experiments.rows import COLUMNS, VARYING, RowTable, read_rows, write_csv
from forewise.experiments.runner import RunSummary, run

__all__ = [
    "COLUMNS",
    "KEY",
    "VARYING",
    "Fit",
    "FitResult",
    "InfeasibleDecisionError",
    "Method",
    "RowTable",
    "RunSummary",
    "Settings",
    "all_fits",
    "compute",
    "load_settings",
    "paper_kl_weight",
    "read_rows",
    "run",
    "write_csv",
]
