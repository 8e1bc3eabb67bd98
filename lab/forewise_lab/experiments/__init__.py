"""Experiments as data: settings files → fits → rows of one long results table.

`schema` and `loading` are the settings files, `kinds` their words, `methods` turns them into
learners, `grid` into fits; `fitting` computes one of them and `judging` measures it; `rows` and
`claims` are the table and who works on it, `runner` puts it all together. Cases, experiments that
roll over time on real data, have `case_schema` and `cases` for their settings and rows, `trials`,
`rolling_fits` and `rolling_grid` for what is computed; `work` is what both kinds have in common.
May import: everything up to learners, datasets, metrics and distributed; nobody below imports it.
To add an experiment: a table in a settings file.
"""

from forewise_lab.experiments.case_schema import CaseTable
from forewise_lab.experiments.divergence import paper_kl_weight
from forewise_lab.experiments.fitting import Fit
from forewise_lab.experiments.grid import all_fits
from forewise_lab.experiments.loading import Settings, load_settings
from forewise_lab.experiments.methods import Method
from forewise_lab.experiments.rolling_fits import judged_windows, read_costs
from forewise_lab.experiments.rolling_grid import CaseGrid
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
    "judged_windows",
    "load_settings",
    "paper_kl_weight",
    "read_costs",
    "read_rows",
    "run",
    "write_csv",
]
