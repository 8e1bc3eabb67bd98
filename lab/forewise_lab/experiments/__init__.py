"""Experiments as data: settings files → fits → rows of one long results table.

`fits` are the paper's experiments, `rolling` cases on real data. To add an experiment: a table in
a settings file.
"""

from forewise_lab.experiments.configuration import Settings, load_settings
from forewise_lab.experiments.rows import COLUMNS, read_rows
from forewise_lab.experiments.runner import RunSummary, run

__all__ = ["COLUMNS", "RunSummary", "Settings", "load_settings", "read_rows", "run"]
