"""What `explain` returns: numbers, and the ways to look at them."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from forewise.explanation.page import as_html
from forewise.explanation.parts import Findings, Unavailable
from forewise.explanation.text import as_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Findings):
    """Why one context is decided as it is. Numbers are in the units of the table and the problem.

    A part that cannot be computed is an `Unavailable` with the reason.

    `Findings` lists the attributes.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(10.0, 30.0, size=(100, 1))
    >>> y = 5.0 * X[:, 0] + random.normal(size=100)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.NeighborPredictor(10)).fit(X, y)
    >>> why = fw.explain(learner, X[:1], n_scenarios=16)
    >>> why.names, why.extrapolates
    (['decision_0'], False)
    """

    def text(self) -> str:
        """The explanation in sentences."""
        return as_text(self)

    def html(self) -> str:
        """The explanation as a piece of a page, escaped, without a figure."""
        return as_html(self)

    def plot(self) -> Figure:
        """Cost curves and scenarios of the first explained decisions; needs Matplotlib."""
        from forewise.figures import CostCurveDisplay
        from forewise.figures.explained import explanation_figure

        curves = [CostCurveDisplay(c.value, c.cost, c.chosen, c.name) for c in self.cost_curves]
        leading = [self.drivers.leading(i) for i in range(len(self.names))]
        return explanation_figure(
            curves, self.drivers.outcome, self.drivers.weight, leading, self.outcome_names
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as values that JSON has; numbers that are not finite are None."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def __repr__(self) -> str:
        return f"Explanation({', '.join(f'{n}={v:.6g}' for n, v in self._first().items())})"

    def _first(self) -> dict[str, float]:
        return {name: self.decision[name] for name in self.names[:3]}

    def _repr_html_(self) -> str:
        return self.html()


def _plain(value: Any) -> Any:
    if isinstance(value, Unavailable):
        return {"unavailable": value.reason}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, bool | int | str) or value is None else str(value)
