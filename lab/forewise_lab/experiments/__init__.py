"""Experiments as data: settings files → fits → rows of one long results table.

`fits` are the paper's experiments, `rolling` cases on real data. To add an experiment: a table in
a settings file.
"""
