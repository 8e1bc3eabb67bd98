"""What all displays share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forewise.figures.style import DISPLAY_STYLE, QUIET


class Display(ABC):
    """Numbers and the way they are drawn; `ax_` and `figure_` are there after `plot`.

    Examples
    --------
    Numbers first, the picture when it is asked for:

    >>> import numpy as np
    >>> import forewise as fw
    >>> value, cost = np.array([8.0, 10.0, 12.0]), np.array([9.0, 5.0, 7.0])
    >>> curve = fw.plots.CostCurveDisplay(value, cost, chosen=10.0)
    >>> curve.plot().figure_.savefig("curve.svg")
    """

    #: Width and height in inches of a figure of its own.
    size: ClassVar[tuple[float, float]] = (6.4, 3.4)

    ax_: Axes
    figure_: Figure

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw into axes that are styled already."""

    def plot(self, ax: Axes | None = None, size: tuple[float, float] | None = None) -> Self:
        """Draw into these axes, or into a new figure of `size` inches."""
        with mpl.rc_context(DISPLAY_STYLE):
            if ax is None:
                figure = Figure(figsize=size or self.size, layout="constrained")
                ax = figure.subplots()
            ax.grid(axis="y", color=QUIET, alpha=0.25, lw=0.6)
            ax.set_axisbelow(True)
            self._draw(ax)
        owner = ax.get_figure()
        assert isinstance(owner, Figure)
        self.ax_, self.figure_ = ax, owner
        return self
