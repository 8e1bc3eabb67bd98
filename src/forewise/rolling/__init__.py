"""Judging over time: train on the past, decide the next month, move on.

`folds` says which rows are the past and which are decided, `evaluation` fits and decides,
`comparison` sets methods side by side. Rows keep the order of time; nothing is shuffled.
May import: exceptions, problems, policy, learners, metrics.
"""

from forewise.rolling.comparison import compare_rolling
from forewise.rolling.evaluation import evaluate_rolling
from forewise.rolling.folds import Fold, rolling_folds

__all__ = ["Fold", "compare_rolling", "evaluate_rolling", "rolling_folds"]
