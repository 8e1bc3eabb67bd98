"""Policies: from a context to a decision; what is saved, loaded and served.

`base` has the contract and the two kinds, `packing` what can be stored and the door for classes of
others (`register`), `files` the built-in classes and reading, `migration` older formats.
"""

from forewise.policy.base import DirectPolicy, Policy, ScenarioPolicy
from forewise.policy.files import load_policy
from forewise.policy.packing import register

__all__ = ["DirectPolicy", "Policy", "ScenarioPolicy", "load_policy", "register"]
