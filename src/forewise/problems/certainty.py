"""When uncertainty cannot matter: one number per outcome decides as well as its distribution.

May import: arguments, its sibling `base`.
"""

from __future__ import annotations

from forewise.problems.base import CertaintyEquivalent, Problem
from forewise.validation.arguments import require_instance


def certainty_equivalent(problem: Problem) -> CertaintyEquivalent | None:
    """What may stand for the whole distribution of the outcome, and why; None if nothing may.

    Where the cost is linear in the outcome, the mean decides; in the balanced newsvendor, the
    median. A point forecast is then all a decision needs, and scenarios only add noise.
    """
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    return problem.certainty_equivalent()
