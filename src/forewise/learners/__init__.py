"""HOW a policy is learned: decoupled, combined, or directly.

`base` is the contract, `objectives` what is minimised; the training loop itself is the predictors'.
"""

from forewise.learners.base import Learner
from forewise.learners.combined import CombinedLearner
from forewise.learners.decoupled import DecoupledLearner, RegretMonitor
from forewise.learners.direct import DirectLearner

__all__ = ["CombinedLearner", "DecoupledLearner", "DirectLearner", "Learner", "RegretMonitor"]
