"""The display of a search for settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes

from forewise.figures.display import Display
from forewise.figures.forecasts import legend_above
from forewise.figures.style import BLUE, INK, ORANGE, QUIET
from forewise.tuning import Tuning

_ROOM = 0.6  # of the span of costs that is drawn above the default's
_NEAR = 0.05


@dataclass(eq=False, repr=False)
class TuningDisplay(Display):
    """Costs of trials in their order, the best so far, and what the default costs.

    Parameters
    ----------
    cost : array (n_trials,)
        Out of fold; of a pruned trial the default's, and its difference to it on the same rows.
        NaN where it failed.
    pruned : array of bool (n_trials,)
    default : float
        Cost of the settings that the predictor came with.

    Examples
    --------
    >>> import forewise as fw, numpy as np
    >>> pruned = np.array([False, True, False])
    >>> display = fw.plots.TuningDisplay(np.array([3.0, 3.4, 2.8]), pruned, 3.0)
    >>> display.plot().best.tolist()
    [3.0, 3.0, 2.8]
    """

    cost: np.ndarray
    pruned: np.ndarray
    default: float

    size = (6.4, 3.2)

    @classmethod
    def from_tuning(cls, tuning: Tuning) -> Self:
        """The trials of a search."""
        trials = tuning.trials
        cost = (tuning.default_cost + trials["difference"]).where(trials["state"] != "failed")
        return cls(
            cost.to_numpy(dtype=float),
            (trials["state"] == "pruned").to_numpy(),
            tuning.default_cost,
        )

    @property
    def best(self) -> np.ndarray:
        """The lowest cost of complete trials so far (n_trials,)."""
        complete = np.where(self.pruned | np.isnan(self.cost), np.inf, self.cost)
        return np.minimum.accumulate(complete)

    def _draw(self, ax: Axes) -> None:
        number, best = np.arange(len(self.cost)), self.best
        low = float(best[np.isfinite(best)].min(initial=self.default))
        span = max(self.default - low, _NEAR * abs(self.default))
        top = self.default + _ROOM * span
        shown = np.minimum(self.cost, top)  # what costs far more stands at the edge
        ax.axhline(self.default, color=ORANGE, lw=1.2, ls=(0, (4, 2)), label="as it came")
        ax.plot(number[self.pruned], shown[self.pruned], "x", color=QUIET, ms=5, mew=1.1,
                label="pruned")  # fmt: skip
        whole = ~self.pruned
        beyond = whole & (self.cost > top)
        ax.plot(number[whole & ~beyond], shown[whole & ~beyond], "o", color=BLUE, ms=4.5, mew=0,
                alpha=0.55, label="complete")  # fmt: skip
        ax.plot(number[beyond], shown[beyond], "^", color=BLUE, ms=4.5, mew=0, alpha=0.55)
        known = np.isfinite(best)
        ax.step(number[known], best[known], where="post", color=BLUE, lw=1.8, label="best so far")
        if known.any():
            at = int(np.argmin(np.where(known, best, np.inf)))
            ax.annotate(f"{best[at]:.4g}", (at, best[at]), xytext=(5, -11), color=INK,
                        textcoords="offset points", fontsize=8)  # fmt: skip
        ax.set_ylim(low - 0.18 * (top - low), top + 0.05 * (top - low))
        ax.set(xlabel="trial", ylabel="cost out of fold")
        legend_above(ax, columns=4)
