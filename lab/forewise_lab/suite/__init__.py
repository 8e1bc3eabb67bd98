"""Predictors compared by the cost of their decisions: `forewise-lab suite run | cliff | report`.

`methods` names the predictors and changes their settings, `tables` loads a split and judges a
predictor on it, `grid` makes the work that a run computes, `page` reads the rows and nothing else.
"""

from forewise_lab.suite.grid import run_suite
from forewise_lab.suite.methods import AUTO, METHODS, cliff_methods
from forewise_lab.suite.page import write_suite_page

__all__ = ["AUTO", "METHODS", "cliff_methods", "run_suite", "write_suite_page"]
