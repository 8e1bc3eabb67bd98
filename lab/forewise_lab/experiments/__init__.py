"""Experiments as data: settings files → fits → rows of one long results table.

`configuration` reads the settings files, `kinds` is their vocabulary, `methods` fits methods.
`fits` are the paper's experiments, `rolling` are cases on real data (`cases`). `work` is what both
give the `runner`, `rows` the table. To add an experiment: a table in a settings file.
"""

from forewise_lab.experiments.configuration import Settings, load_settings
from forewise_lab.experiments.rows import COLUMNS, read_rows
from forewise_lab.experiments.runner import RunSummary, run

__all__ = ["COLUMNS", "RunSummary", "Settings", "load_settings", "read_rows", "run"]
