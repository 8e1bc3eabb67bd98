"""Why a decision is what it is: `explain` makes an `Explanation` of one context.

`asking` has the function, `case` is the decision with its scenarios, `parts` what an explanation
has in it, `causes` the scenarios and constraints behind the decision, `sensitivity` how it moves
with costs and given data, `neighbours` past rows and changes of the context, `text` and `page` how
it reads. To add a part: a frozen dataclass in `parts`, a function of a `Case`, a field of
`Explanation`, and a paragraph in `text`.
"""

from forewise.explanation.asking import explain
from forewise.explanation.explanation import Explanation
from forewise.explanation.neighbours import Alternative, other_values
from forewise.explanation.parts import (
    Binding,
    Change,
    CostCurve,
    Drivers,
    Neighbour,
    Sensitivity,
    Unavailable,
    Uncertainty,
)

__all__ = [
    "Alternative",
    "Binding",
    "Change",
    "CostCurve",
    "Drivers",
    "Explanation",
    "Neighbour",
    "Sensitivity",
    "Unavailable",
    "Uncertainty",
    "explain",
    "other_values",
]
