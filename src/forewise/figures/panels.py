"""Predictions and decisions over a single feature, policy by policy."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forewise.datasets.base import Dataset
from forewise.figures.style import BLUE, STYLE, VERMILION
from forewise.policy import Policy, ScenarioPolicy

_GRID = 500  # contexts at which curves are drawn
_SCENARIOS = 512


def decision_panels(data: Dataset, policies: Mapping[str, Policy], level: float) -> Figure:
    """One panel per policy over a single feature, as in the paper's last figure.

    Shows the data, the predicted mean and 5 to 95 % band of policies with scenarios, the decision,
    and the optimal one.

    Parameters
    ----------
    data : Dataset
        One feature and one outcome, with its true conditional distribution.
    policies : mapping from name to Policy
    level : float
        The optimal decision is the true quantile of this level.

    Examples
    --------
    >>> import forewise as fw
    >>> data, problem = fw.datasets.nv1(60, random_state=0), fw.datasets.nv_problem()
    >>> learner = fw.DecoupledLearner(problem, fw.NeighborPredictor(10)).fit(data.X, data.y)
    >>> figure = fw.plots.decision_panels(data, {"neighbours": learner.policy_}, level=0.1)
    >>> len(figure.axes)
    2
    """
    first, last = np.quantile(data.X[:, 0], [0.001, 0.999])
    x = np.linspace(first, last, _GRID)[:, None]
    truth = Dataset(x, np.zeros_like(x), data.feature_names, data.outcome_names, data.conditional)
    wanted = np.quantile(truth.true_scenarios(4096).values[..., 0].numpy(), level, axis=1)
    rows = (len(policies) + 1) // 2
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 0.6 + 3.1 * rows), layout="constrained")
        panels = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False).flatten()
        for axes, (name, policy) in zip(panels, policies.items(), strict=False):
            axes.scatter(data.X[:, 0], data.y[:, 0], s=5, color="0.75", lw=0, label="data")
            _draw_policy(axes, x, policy)
            axes.plot(x[:, 0], wanted, color="black", lw=1.1, ls=(0, (4, 2)),
                      label=f"true {level:g} quantile")  # fmt: skip
            axes.set_title(name, loc="left", fontweight="bold")
        for axes in panels[len(policies) :]:
            axes.axis("off")
        low, high = np.quantile(data.y, [0.0, 0.999])
        panels[0].set_ylim(min(low, 0.0) - 1, high + 2)
        for axes in panels[::2]:
            axes.set_ylabel("outcome")
        for axes in panels[-2:]:
            axes.set_xlabel("context")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=5, frameon=False)
    return figure


def _draw_policy(axes: Axes, x: np.ndarray, policy: Policy) -> None:
    if isinstance(policy, ScenarioPolicy):
        scenarios = policy.predictor.sample(x, _SCENARIOS, random_state=0)
        values, weights = scenarios.values[..., 0].numpy(), scenarios.weights.numpy()
        low, high = np.quantile(values, [0.05, 0.95], axis=1)
        axes.fill_between(
            x[:, 0], low, high, color=BLUE, alpha=0.22, lw=0, label="predicted 5–95 %"
        )
        axes.plot(x[:, 0], (weights * values).sum(1), color=BLUE, lw=1.2, label="predicted mean")
    decided = policy.decide(x, n_scenarios=_SCENARIOS)
    axes.plot(x[:, 0], decided[:, 0], color=VERMILION, lw=1.4, label="decision")
