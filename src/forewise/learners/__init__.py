"""HOW a policy is learned: decoupled, combined, directly, or in whichever way costs least.

`base` is the contract, `objectives` what is minimised; the training loop itself is the predictors'.
`auto` chooses among predictors by what `out_of_fold` finds.
"""

from forewise.learners.auto import AutoLearner, default_candidates
from forewise.learners.base import Learner
from forewise.learners.combined import CombinedLearner
from forewise.learners.decoupled import DecoupledLearner, RegretMonitor
from forewise.learners.direct import DirectLearner

__all__ = [
    "AutoLearner", "CombinedLearner", "DecoupledLearner", "DirectLearner", "Learner",
    "RegretMonitor", "default_candidates",
]  # fmt: skip
