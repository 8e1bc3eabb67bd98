"""Figures of predictions and decisions: what users need of `forewise.figures`."""

from forewise.figures import (
    STYLE,
    CalibrationDisplay,
    CostCurveDisplay,
    CostServiceDisplay,
    CoverageDisplay,
    DecisionDisplay,
    Display,
    LeaderboardDisplay,
    TuningDisplay,
    decision_panels,
    looks,
)

__all__ = [
    "STYLE",
    "CalibrationDisplay",
    "CostCurveDisplay",
    "CostServiceDisplay",
    "CoverageDisplay",
    "DecisionDisplay",
    "Display",
    "LeaderboardDisplay",
    "TuningDisplay",
    "decision_panels",
    "looks",
]
