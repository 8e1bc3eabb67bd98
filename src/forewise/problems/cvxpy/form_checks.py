"""What a problem must be once it is taken apart: checks that arrays can tell, and CVXPY cannot.

May import: exceptions, its siblings `canonical`, `lifting`.
"""

from __future__ import annotations

from typing import Any

from forewise.exceptions import ModelError
from forewise.problems.cvxpy.canonical import CanonicalForm
from forewise.problems.cvxpy.lifting import LiftedForm


def check_roles(form: CanonicalForm, outcomes: list[Any]) -> None:
    """No outcome is in a quadratic term."""
    for parameter in form.P_terms.parameter[form.is_outcome(form.P_terms.parameter)]:
        place = int(parameter)
        for outcome in outcomes:
            if place < outcome.size:
                raise ModelError(
                    f"the outcome {outcome.name()} scales a quadratic term: a negative draw of it "
                    "would turn the term over. Put its square root inside of the square, as in "
                    "sum_squares(root * z), or multiply something linear"
                )
            place -= outcome.size


def check_chances(form: CanonicalForm) -> None:
    """Chance constraints stand in linear and quadratic programs only."""
    if len(form.level) and (len(form.cone_kind) or form.integer.any()):
        raise ModelError(
            "chance(...) can only stand in linear and quadratic problems, but this one has cones "
            "or whole numbers: leave them out, or let the constraint hold in every scenario"
        )


def check_equations(lifted: LiftedForm) -> None:
    """No equation ties the decision alone to the outcome."""
    V = lifted.blocks["V"]
    has_recourse = (V.constant != 0).any(-1)
    for part in (V.outcome, V.given):
        if part is not None:
            has_recourse[part.entry // V.constant.shape[-1]] = True
    if not has_recourse.all():
        raise ModelError(
            "an equality constraint ties the decision alone to the outcome, which no decision "
            "meets in two scenarios: let a variable that is not a decision take the difference"
        )
