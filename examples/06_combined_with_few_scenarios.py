"""Combined against decoupled learning where decisions are made from few scenarios.

Two products share a room whose size is given; one may substitute for the other, which is recourse.
The true distribution is known, so that regrets are exact. Run it with
``python examples/06_combined_with_few_scenarios.py`` (some minutes); it draws
``06_combined_with_few_scenarios.png``.
"""

from pathlib import Path
from typing import Any

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import forewise as fw

NAMES = ("decoupled", "combined")


def problem() -> fw.CvxpyProblem:
    make = cp.Variable(2, nonneg=True, name="make")
    demand, room = cp.Parameter(2, name="demand"), cp.Parameter(name="room")
    lent, short, over = (cp.Variable(2, nonneg=True) for _ in range(3))
    rows = [
        cp.sum(make) <= room,
        lent <= make,
        short >= demand - make + lent - lent[::-1],
        over >= make - demand - lent + lent[::-1],
    ]
    cost = np.array([1.0, 1.2]) @ make + np.array([9.0, 6.0]) @ short
    cost += np.array([0.5, 0.3]) @ over + 1.5 * cp.sum(lent)
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=make, outcome=demand, given=room)


def contexts(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts, and the room that each has."""
    random = np.random.default_rng(seed)
    return random.uniform(-1, 1, (n, 2)), random.uniform(6, 20, n)


def demands(X: np.ndarray, seed: int, n_draws: int) -> np.ndarray:
    """Draws (n, n_draws, 2) of the true distribution: skewed, its spread a function of x."""
    mean = np.column_stack([6 + 2 * np.sin(3 * X[:, 0]), 5 + 2 * X[:, 1]])
    spread = np.column_stack([1 + 0.8 * X[:, 1], 1.2 - 0.8 * X[:, 0]])
    excess = np.random.default_rng(seed).exponential(size=(len(X), n_draws, 2)) - 1
    return mean[:, None] + spread[:, None] * excess


def regrets(
    seed: int, n_scenarios: int, n_rows: int = 3000, training: fw.Training | None = None
) -> np.ndarray:
    """Mean regret of the two learners' decisions, each made from a few scenarios."""
    X, room = contexts(n_rows, seed)
    y = demands(X, 100 + seed, 1)[:, 0]
    X_new, room_new = contexts(400, 1000 + seed)
    truth = fw.Scenarios(demands(X_new, 2000 + seed, 256))
    predictor = fw.BayesianPredictor(training=training, random_state=seed)
    learners = [
        fw.DecoupledLearner(problem(), predictor),
        fw.CombinedLearner(problem(), predictor, n_scenarios, n_scenarios_deciding=n_scenarios),
    ]
    found = []
    for learner in learners:
        decided = learner.fit(X, y, given=room).decide(X_new, n_scenarios, given=room_new)
        found.append(fw.metrics.expected_regret(problem().bound(room_new), decided, truth))
    return np.array(found)


def main(
    folder: Path = Path(), counts: tuple[int, ...] = (2, 4, 8, 16), n_seeds: int = 5, **sizes: Any
) -> dict[int, np.ndarray]:
    """Regrets (n_seeds, 2) by number of scenarios."""
    found = {}
    for count in counts:
        found[count] = np.array([regrets(seed, count, **sizes) for seed in range(n_seeds)])
        gain = fw.metrics.bootstrap_difference(found[count][:, 1], found[count][:, 0])
        means = ", ".join(f"{n} {m:.3f}" for n, m in zip(NAMES, found[count].mean(0), strict=True))
        print(f"{count:>3} scenarios: {means}; combined - decoupled {gain.estimate:.3f} "
              f"[{gain.lower:.3f}, {gain.upper:.3f}]", flush=True)  # fmt: skip
    draw(found, folder / "06_combined_with_few_scenarios.png")
    return found


def draw(found: dict[int, np.ndarray], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for which, color in zip(range(2), ["#D55E00", "#0072B2"], strict=True):
        means = [runs[:, which].mean() for runs in found.values()]
        axes.plot(list(found), means, "o-", color=color, label=NAMES[which])
        for count, runs in found.items():
            axes.plot([count] * len(runs), runs[:, which], ".", color=color, alpha=0.4)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="scenarios, in training and when deciding", ylabel="regret", ylim=(0, None))
    axes.set_xticks(list(found), [str(count) for count in found])
    axes.set_title("Combined learning gains with few scenarios", loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
