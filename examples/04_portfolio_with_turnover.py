"""A portfolio that starts from current holdings: CVaR of the loss, and costs of trading.

Current holdings are *given*: known when deciding, different in every context. Run it with
``python examples/04_portfolio_with_turnover.py``; it draws ``04_portfolio_with_turnover.png``.
"""

from pathlib import Path

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import forewise as fw

ASSETS = ["bonds", "stocks", "gold", "oil"]
COST_OF_TRADING = 0.002


def problem() -> fw.CvxpyProblem:
    hold = cp.Variable(4, nonneg=True, name="hold")
    returns, held = cp.Parameter(4, name="returns"), cp.Parameter(4, name="held")
    loss = -returns @ hold + COST_OF_TRADING * cp.norm1(hold - held)
    return fw.CvxpyProblem(
        cp.Minimize(loss), [cp.sum(hold) == 1], decision=hold, outcome=returns, given=held
    )


def weeks(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A nervousness index, and returns whose spread and preferences follow it."""
    random = np.random.default_rng(seed)
    nervous = np.zeros(n)
    for week in range(1, n):
        nervous[week] = 0.9 * nervous[week - 1] + 0.4 * random.normal()
    spread = np.exp(0.5 * nervous)[:, None] * np.array([0.002, 0.015, 0.010, 0.025])
    mean = np.array([0.0006, 0.0030, 0.0008, 0.0020]) - np.outer(nervous, [0, 3e-3, -3e-3, 0])
    return nervous[:, None], mean + spread * random.standard_t(5, size=(n, 4))


def follow(learner: fw.Learner, X: np.ndarray, returns: np.ndarray, seed: int = 0) -> dict:
    """Week by week: decide from what is held, pay for the trades, take the returns."""
    held, wealth, path, holdings = np.full(4, 0.25), 1.0, [], []
    for week in range(len(X)):
        hold = learner.decide(X[week : week + 1], 128, seed, given=held[None])[0]
        wealth *= 1 + returns[week] @ hold - COST_OF_TRADING * np.abs(hold - held).sum()
        grown = hold * (1 + returns[week])
        held = grown / grown.sum()
        path.append(wealth)
        holdings.append(hold)
    return {"wealth": np.array(path), "hold": np.array(holdings)}


def main(folder: Path = Path(), n_weeks: int = 150) -> dict[str, float]:
    X, returns = weeks(1500, seed=0)
    X_new, returns_new = weeks(n_weeks, seed=1)
    risks = {
        "mean": fw.Expectation(),
        "mean and tail": fw.MeanCVaR(0.1, 0.9),
        "tail": fw.CVaR(0.9),
    }
    found, losses = {}, {}
    for name, risk in risks.items():
        learner = fw.DecoupledLearner(
            problem().with_risk(risk), fw.NeighborPredictor(n_neighbors=150)
        )
        learner.fit(X, returns, given=np.full((len(X), 4), 0.25))
        found[name] = follow(learner, X_new, returns_new)
        path = np.concatenate([[1.0], found[name]["wealth"]])
        weekly = 1 - path[1:] / path[:-1]
        losses[name] = fw.CVaR(0.9)(weekly).item()
        print(f"{name:>13}: wealth {path[-1]:.3f}; the worst tenth of weeks loses "
              f"{100 * losses[name]:.2f} % on average")  # fmt: skip
    draw(X_new[:, 0], found, folder / "04_portfolio_with_turnover.png")
    return losses


def draw(nervous: np.ndarray, found: dict, path: Path) -> None:
    figure, panels = plt.subplots(4, 1, figsize=(8, 8), sharex=True, layout="constrained")
    colors = ["#009E73", "#0072B2", "#E69F00", "#666666"]
    for axes, (name, run) in zip(panels, found.items(), strict=False):
        axes.stackplot(range(len(nervous)), run["hold"].T, labels=ASSETS, colors=colors, alpha=0.85)
        axes.set(ylim=(0, 1), ylabel="share held")
        axes.set_title(f"{name} of the loss", loc="left", fontsize=10, fontweight="bold")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=4,
                  frameon=False)  # fmt: skip
    for (name, run), color in zip(found.items(), ["#D55E00", "#0072B2", "black"], strict=True):
        panels[3].plot(run["wealth"], color=color, label=name)
    panels[3].set(xlabel="week", ylabel="wealth", xlim=(0, len(nervous) - 1))
    panels[3].legend(frameon=False)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
