"""An explanation in sentences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forewise.display import rounded
from forewise.explanation.parts import Findings, Sensitivity, Unavailable

_SHOWN = 6  # lines of a list
_NOTHING = 1e-9  # share of a decision that is rounding
_RISE = 0.1  # of a cost parameter, in the sentence about it


def change(value: float) -> str:
    """A number with its sign."""
    return f"+{rounded(value)}" if value > 0 else rounded(value)


def percent(share: float) -> str:
    """A share without digits behind the point."""
    return f"{100 * share:.0f} %"


def value_of(value: Any) -> str:
    """A value of the user's table."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    is_number = isinstance(value, int | float | np.number)
    return rounded(float(value)) if is_number else str(value)


def sentences(why: Findings) -> dict[str, list[str]]:
    """Title of every part, and its sentences."""
    return {
        "Decision": _decision(why),
        "Scenarios behind it": _scenarios(why),
        "Around it": _around(why),
        "Constraints that bind": _constraints(why),
        "How sure the forecast is": _uncertainty(why),
        "Most similar past rows": _neighbours(why),
        "If costs or given data were others": _sensitivities(why),
        "What would change it": _changes(why),
    }


def as_text(why: Findings) -> str:
    """All parts below their titles."""
    parts = [
        "\n".join([title, *(f"  {line}" for line in lines)])
        for title, lines in sentences(why).items()
    ]
    return "\n\n".join(parts)


def _decision(why: Findings) -> list[str]:
    lines = [
        f"{name}: {rounded(why.decision[name])} (± {rounded(error)} with other draws)"
        for name, error in why.decision_error.items()
    ]
    others = len(why.decision) - len(why.names)
    if others:
        lines.append(f"{others} smaller decisions are not listed.")
    lines.append(f"Expected cost: {rounded(why.expected_cost)}.")
    if not math.isclose(why.objective, why.expected_cost, rel_tol=1e-9, abs_tol=1e-300):
        lines.append(f"Risk of the cost, which is minimised: {rounded(why.objective)}.")
    if why.note:
        lines.append(f"Uncertainty does not change it: {why.note}.")
    if why.extrapolates:
        lines.append("The row lies far outside of what was learned from: be careful.")
    return lines


def _scenarios(why: Findings) -> list[str]:
    drivers = why.drivers
    lines = []
    if isinstance(drivers.share, Unavailable):
        lines.append(f"Which scenarios count most is unknown: {drivers.share.reason}.")
    for i, name in enumerate(why.names[:_SHOWN]):
        leading = drivers.leading(i)
        more, less = percent(drivers.more[i]), percent(drivers.less[i])
        asks = f"{more} of the scenarios ask for more, {less} for less"
        if isinstance(drivers.share, Unavailable):
            lines.append(f"{name}: {asks}.")
            continue
        if not len(leading):
            lines.append(f"{name}: {asks}; none moves it, a constraint holds it.")
            continue
        at = int(np.argmax(_spread(drivers.outcome[leading]) / _spread(drivers.outcome)))
        k = i if drivers.outcome.shape[1] == len(why.decision) else at
        own, every = drivers.outcome[leading, k], drivers.outcome[:, k]
        lines.append(
            f"{name}: {len(leading)} of {len(every)} scenarios decide it, with "
            f"{why.outcome_names[k]} {rounded(own.min())} to {rounded(own.max())} "
            f"(all: {rounded(every.min())} to {rounded(every.max())}). {asks}."
        )
    worst = int(np.argmax(drivers.cost))
    named = ", ".join(
        f"{name} {rounded(v)}"
        for name, v in list(zip(why.outcome_names, drivers.outcome[worst], strict=True))[:_SHOWN]
    )
    lines.append(f"Dearest scenario: {named}, at a cost of {rounded(drivers.cost[worst])}.")
    return lines


def _spread(outcome: np.ndarray) -> np.ndarray:
    return np.maximum(np.ptp(outcome, axis=0), 1e-300)


def _around(why: Findings) -> list[str]:
    lines = []
    for curve in why.cost_curves[:_SHOWN]:
        below, above = curve.cost[len(curve.cost) // 4], curve.cost[-(len(curve.cost) // 4) - 1]
        low = curve.value[len(curve.cost) // 4]
        high = curve.value[-(len(curve.cost) // 4) - 1]
        ends = [
            f"{rounded(value)} would cost {change(cost - why.objective)}"
            if math.isfinite(cost)
            else f"{rounded(value)} is not allowed"
            for value, cost in ((low, below), (high, above))
        ]
        lines.append(f"{curve.name}: {ends[0]}, {ends[1]}.")
    return lines


def _constraints(why: Findings) -> list[str]:
    if isinstance(why.constraints, Unavailable):
        return [f"Not known: {why.constraints.reason}."]
    lines = [
        f"{binding.name}: one unit more on its right-hand side changes the expected cost by "
        f"{change(binding.shadow_price)}."
        for binding in why.constraints[:_SHOWN]
    ]
    return lines or ["None."]


def _uncertainty(why: Findings) -> list[str]:
    if isinstance(why.uncertainty, Unavailable):
        return [f"Not known: {why.uncertainty.reason}."]
    return [
        f"{part.outcome}: standard deviation "
        f"{rounded(math.sqrt(part.epistemic + part.aleatoric))}; "
        f"{percent(part.epistemic_share)} of the variance is ignorance that more data would "
        f"reduce, the rest is noise ({part.how})."
        if part.epistemic + part.aleatoric > 0
        else f"{part.outcome}: a point forecast, without uncertainty."
        for part in why.uncertainty[:_SHOWN]
    ]


def _neighbours(why: Findings) -> list[str]:
    if isinstance(why.neighbours, Unavailable):
        return [f"Not known: {why.neighbours.reason}."]
    return [
        f"{row.label}: "
        + ", ".join(f"{name} {rounded(v)}" for name, v in list(row.outcome.items())[:_SHOWN])
        + f"; this decision would have cost {rounded(row.cost)} (distance {rounded(row.distance)})"
        for row in why.neighbours
    ]


def _sensitivities(why: Findings) -> list[str]:
    if isinstance(why.sensitivities, Unavailable):
        return [f"Not known: {why.sensitivities.reason}."]
    ranked = sorted(why.sensitivities, key=lambda s: -abs(s.cost * s.value))
    lines = [_sentence(why, s) for s in ranked[:_SHOWN]]
    if len(ranked) > _SHOWN:
        lines.append(f"{len(ranked) - _SHOWN} more move the cost less.")
    return lines or ["The problem has no numbers that could be others."]


def _sentence(why: Findings, s: Sensitivity) -> str:
    rise = _RISE * abs(s.value) or 1.0
    moved = ", ".join(
        f"{name} {change(slope * rise)}"
        for name, slope in s.decision.items()
        if abs(slope * rise) > _NOTHING * abs(why.decision[name])
    )
    return (
        f"{s.name} {rounded(s.value)} → {rounded(s.value + rise)}: {moved or 'no decision moves'}; "
        f"expected cost {change(s.cost * rise)} (by {s.how})."
    )


def _changes(why: Findings) -> list[str]:
    if isinstance(why.changes, Unavailable):
        return [f"Not known: {why.changes.reason}."]
    lines = [
        f"{found.column} {value_of(found.then)} instead of {value_of(found.now)}: "
        + ", ".join(
            f"{name} {rounded(value)}" for name, value in list(found.decision.items())[:_SHOWN]
        )
        for found in why.changes
    ]
    return lines or ["No past value of any single column."]
