"""Experiments as data: settings files → fits → rows of one long results table.

`configuration` reads the settings files, `kinds` is their vocabulary, `methods` fits methods.
`fits` are the paper's experiments, measured by `evaluation`; `rolling` are cases on real data
(`cases`, `trials`). `work` is what both give the `runner`, `rows` the table. To add an experiment:
a table in a settings file.
"""

from forewise_lab.experiments.configuration import CaseTable, Settings, load_settings
from forewise_lab.experiments.fits import Fit, all_fits
from forewise_lab.experiments.methods import Method, paper_kl_weight
from forewise_lab.experiments.rolling import CaseGrid, evaluation_windows, read_costs
from forewise_lab.experiments.rows import COLUMNS, VARYING, RowTable, read_rows, write_csv
from forewise_lab.experiments.runner import RunSummary, run
from forewise_lab.experiments.work import KEY, FitResult, Work, compute

__all__ = [
    "COLUMNS",
    "KEY",
    "VARYING",
    "CaseGrid",
    "CaseTable",
    "Fit",
    "FitResult",
    "Method",
    "RowTable",
    "RunSummary",
    "Settings",
    "Work",
    "all_fits",
    "compute",
    "evaluation_windows",
    "load_settings",
    "paper_kl_weight",
    "read_costs",
    "read_rows",
    "run",
    "write_csv",
]
