"""Figures of predictions and decisions: what users need of `forewise.figures`."""

from forewise.figures import *  # noqa: F403
from forewise.figures import __all__ as __all__
