"""What `explain` returns: numbers, and the ways to look at them."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from forewise.explanation.page import as_html
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
from forewise.explanation.text import as_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why one context is decided as it is. Numbers are in the units of the table and the problem.

    A part that cannot be computed is an `Unavailable` with the reason.

    Attributes
    ----------
    names : list of str
        The decisions that are explained one by one.
    decision : dict of float
        All decisions by name.
    decision_error : dict of float
        Standard deviation of the explained decisions if the scenarios' weights were drawn anew (a
        Bayesian bootstrap): differences below it are noise. Scenarios are stratified, so that it
        is rather too large.
    expected_cost, objective : float
        The mean cost over the scenarios, and what the problem minimises: the mean or its risk.
    context : dict
        The columns of the row.
    outcome_names : list of str
    note : str
        Why uncertainty does not matter for this problem, where it does not.
    extrapolates : bool
        Whether the context lies far outside of the training rows.
    drivers : Drivers
    cost_curves : list of CostCurve
    constraints : list of Binding
        First-stage constraints. Those of scenarios are in the cost.
    uncertainty : list of Uncertainty
    sensitivities : list of Sensitivity
    neighbours : list of Neighbour
    changes : list of Change
    """

    names: list[str]
    decision: dict[str, float]
    decision_error: dict[str, float]
    expected_cost: float
    objective: float
    context: dict[str, Any]
    outcome_names: list[str]
    note: str
    extrapolates: bool
    drivers: Drivers
    cost_curves: list[CostCurve]
    constraints: list[Binding] | Unavailable
    uncertainty: list[Uncertainty] | Unavailable
    sensitivities: list[Sensitivity] | Unavailable
    neighbours: list[Neighbour] | Unavailable
    changes: list[Change] | Unavailable

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
