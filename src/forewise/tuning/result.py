"""What a search found: its trials, the best settings and the policy that they lead to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forewise.display import described
from forewise.learners.decoupled import DecoupledLearner
from forewise.policy.base import Policy
from forewise.predictors import Predictor

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """The result of `tune`.

    Attributes
    ----------
    study : optuna.Study
        With every trial, for Optuna's own tools.
    trials : DataFrame
        A row per trial in order: `cost` of its decisions out of fold, as far as it came,
        `difference` to the first trial on the same rows, the number of `folds`, its `state`
        ("complete", "pruned", "failed"), `seconds`, a `note`, and its settings. The first has the
        settings of the predictor as it came.
    best_predictor : Predictor
        Not fitted, with the best settings.
    best_settings : dict
        What they are; empty where the predictor was best as it came.
    learner : DecoupledLearner
        Fitted to all rows with the best settings.

    Examples
    --------
    >>> import forewise as fw, numpy as np
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> y = X + 0.1 * np.sin(50 * X)
    >>> found = fw.tune(fw.Newsvendor(3, 1), X, y, fw.NeighborPredictor(), n_trials=3, n_folds=2)
    >>> isinstance(found, fw.tuning.Tuning), found.verdict[:8]
    (True, '3 trials')
    """

    study: Any
    trials: pd.DataFrame
    best_predictor: Predictor
    best_settings: dict[str, Any]
    learner: DecoupledLearner

    @property
    def policy(self) -> Policy:
        """The policy of the best settings, fitted to all rows."""
        return self.learner.policy_

    @property
    def best_cost(self) -> float:
        """Mean cost of decisions out of fold, of the best settings; never above the default's."""
        complete = self.trials[self.trials["state"] == "complete"]
        return float(complete["cost"].min())

    @property
    def default_cost(self) -> float:
        """The same of the predictor as it came."""
        return float(self.trials["cost"].iloc[0])

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        counts = self.trials["state"].value_counts()
        text = f"{len(self.trials)} trials, {int(counts.get('pruned', 0))} of them pruned: "
        if not self.best_settings:
            return text + f"the settings it came with cost least ({self.default_cost:.4g})"
        said = ", ".join(f"{name}={_short(value)}" for name, value in self.best_settings.items())
        gain = 1 - self.best_cost / self.default_cost if self.default_cost else 0.0
        return text + (
            f"{said} costs {self.best_cost:.4g} out of fold, {gain:.1%} less than the settings it "
            f"came with ({self.default_cost:.4g}). The best of many looks better than it is: judge "
            "it on rows that the search has not seen"
        )

    def __repr__(self) -> str:
        return described(self)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
