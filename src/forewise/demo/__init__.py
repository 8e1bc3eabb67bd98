"""`forewise demo`: solving, then learning to decide, shown on the paper's problems.

May import: the public names, plots.
"""

from forewise.demo.learning import run_learning_demo
from forewise.demo.solving import run_solving_demo

__all__ = ["run_learning_demo", "run_solving_demo"]
