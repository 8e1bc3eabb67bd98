"""Policies: from a context to a decision; what is saved, loaded and served.

May import: problems, solvers, predictors, storage; never learners. `base` is the contract and
the loop over pieces of a large table, `scenario` and `direct` the two kinds, `files` the format.
"""

from forewise.policy.base import Policy
from forewise.policy.direct import DirectPolicy
from forewise.policy.files import load_policy
from forewise.policy.packing import register
from forewise.policy.scenario import ScenarioPolicy

__all__ = ["DirectPolicy", "Policy", "ScenarioPolicy", "load_policy", "register"]
