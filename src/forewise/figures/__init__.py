"""Displays: figures that hold the numbers they show; users find them in `forewise.plots`.

A display is made by one of its ``from_...`` methods, and draws them
by ``plot(ax=None)``, as in scikit-learn. `style` has the palette. To add one: a dataclass that
derives from `Display` with a `_draw`.
"""

from forewise.exceptions import MissingDependencyError

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise MissingDependencyError(
        'figures need Matplotlib, which is not installed: pip install "forewise[plots]"'
    ) from error

from forewise.figures.costs import CostCurveDisplay, CostServiceDisplay, LeaderboardDisplay
from forewise.figures.display import Display
from forewise.figures.forecasts import CalibrationDisplay, CoverageDisplay, DecisionDisplay
from forewise.figures.panels import decision_panels
from forewise.figures.style import STYLE, looks
from forewise.figures.trials import TuningDisplay

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
