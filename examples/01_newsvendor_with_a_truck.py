"""Four products share a truck whose size is known in the morning: the problem in CVXPY.

Run it with ``python examples/01_newsvendor_with_a_truck.py``; it draws
``01_newsvendor_with_a_truck.png`` in the current folder.
"""

from pathlib import Path

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import forewise as fw

PRODUCTS = ["bread", "rolls", "cake", "pretzels"]
VOLUME = np.array([2.0, 1.0, 3.0, 1.5])
SHORTAGE, EXCESS = np.array([4.0, 2.0, 9.0, 3.0]), np.array([1.0, 0.5, 5.0, 1.0])


def problem() -> fw.CvxpyProblem:
    """The deterministic problem, as one would write it if demand were known."""
    order = cp.Variable(4, nonneg=True, name="order")
    demand, truck = cp.Parameter(4, name="demand"), cp.Parameter(name="truck")
    cost = SHORTAGE @ cp.pos(demand - order) + EXCESS @ cp.pos(order - demand)
    return fw.CvxpyProblem(
        cp.Minimize(cost), [VOLUME @ order <= truck], decision=order, outcome=demand, given=truck
    )


def past_days(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts (weekend, temperature), demands, and the truck that came."""
    random = np.random.default_rng(seed)
    weekend, temperature = random.random(n) < 2 / 7, random.normal(15, 8, n)
    mean = np.array([40.0, 60.0, 15.0, 30.0]) * (1 + 0.5 * np.outer(weekend, [0.2, 0.6, 1.5, 0.4]))
    mean *= 1 + 0.01 * np.outer(temperature - 15, [0.0, 0.5, -1.5, 1.0])
    demand = random.gamma(12.0, mean / 12.0)
    return np.column_stack([weekend, temperature]), demand, random.choice([150.0, 230.0, 310.0], n)


def main(folder: Path = Path(), training: fw.Training | None = None) -> dict[str, float]:
    X, demand, truck = past_days(1500, seed=0)
    X_new, demand_new, truck_new = past_days(500, seed=1)
    learners = {
        "sample average": fw.DecoupledLearner(problem(), fw.EmpiricalPredictor()),
        "forest": fw.DecoupledLearner(problem(), fw.ForestPredictor(random_state=0)),
        "Bayesian network": fw.DecoupledLearner(
            problem(), fw.BayesianPredictor(training=training, random_state=0)
        ),
    }
    costs = {}
    for name, learner in learners.items():
        learner.fit(X, demand, given=truck)
        costs[name] = -learner.score(X_new, demand_new, given=truck_new)
        print(f"{name:>17}: mean cost of a day {costs[name]:6.1f}")

    # One mild Saturday, and trucks of every size.
    sizes = np.linspace(40, 400, 60)
    saturday = np.tile([1.0, 18.0], (len(sizes), 1))
    orders = learners["Bayesian network"].decide(saturday, n_scenarios=256, given=sizes)
    draw(sizes, orders, folder / "01_newsvendor_with_a_truck.png")
    return costs


def draw(sizes: np.ndarray, orders: np.ndarray, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.stackplot(
        sizes, (orders * VOLUME).T, labels=PRODUCTS, alpha=0.85,
        colors=["#0072B2", "#56B4E9", "#D55E00", "#E69F00"],
    )  # fmt: skip
    axes.plot(sizes, sizes, color="black", lw=1, ls="--", label="all of the truck")
    axes.set(xlabel="size of the truck", ylabel="volume ordered", xlim=(sizes[0], sizes[-1]))
    axes.set_ylim(0, 1.1 * (orders @ VOLUME).max())
    axes.set_title("What goes on the truck on a mild Saturday", loc="left", fontweight="bold")
    axes.legend(loc="upper left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
