"""HOW a policy is learned: decoupled, combined, or directly.

`base` is the contract, `objectives` what each minimises, `monitor` what watches; the training
loop itself is the predictors'. May import: policy, predictors, problems, solvers, tables.
"""

from forewise.learners.base import Learner
from forewise.learners.combined import CombinedLearner
from forewise.learners.decoupled import DecoupledLearner
from forewise.learners.direct import DirectLearner
from forewise.learners.monitor import RegretMonitor

__all__ = ["CombinedLearner", "DecoupledLearner", "DirectLearner", "Learner", "RegretMonitor"]
