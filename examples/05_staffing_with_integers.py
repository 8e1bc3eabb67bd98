"""How many people to call in for each shift: integers, with overtime as recourse.

Integer decisions have no gradients: the distribution is learned decoupled, and each context is
solved by HiGHS. Run it with ``python examples/05_staffing_with_integers.py``; it draws
``05_staffing_with_integers.png``.
"""

from pathlib import Path

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import forewise as fw

SHIFTS = ["morning", "day", "evening"]
WAGE, OVERTIME, LOST_CALL = np.array([100.0, 90.0, 120.0]), 30.0, 12.0
CALLS_PER_PERSON = 20.0


def problem() -> fw.CvxpyProblem:
    staff = cp.Variable(3, integer=True, name="staff")
    calls = cp.Parameter(3, name="calls")
    hours, lost = cp.Variable(3, nonneg=True), cp.Variable(3, nonneg=True)  # on the day
    rows = [
        staff >= 1,
        CALLS_PER_PERSON * staff + 5 * hours + lost >= calls,
        hours <= 2 * staff,  # nobody works more than two hours longer
    ]
    cost = WAGE @ staff + OVERTIME * cp.sum(hours) + LOST_CALL * cp.sum(lost)
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=staff, outcome=calls)


def past_days(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (weekday, whether bills went out) and the calls of the three shifts."""
    random = np.random.default_rng(seed)
    weekday, bills = random.integers(0, 7, n), random.random(n) < 0.15
    level = np.where(weekday < 5, 1.0, 0.5) * (1 + 0.8 * bills)
    mean = np.outer(level, [60.0, 110.0, 45.0])
    busy = random.gamma(8.0, 1 / 8.0, (n, 1))  # a busy day is busy all day
    return np.column_stack([weekday, bills]), random.poisson(mean * busy).astype(float)


def main(folder: Path = Path(), n_days: int = 140) -> dict[str, float]:
    X, calls = past_days(800, seed=0)
    X_new, calls_new = past_days(n_days, seed=1)
    learner = fw.DecoupledLearner(problem(), fw.ForestPredictor(random_state=0)).fit(X, calls)
    scenarios = learner.policy_.predictor.sample(X_new, 40, random_state=0)
    mean = fw.Scenarios((scenarios.weights[..., None] * scenarios.values).sum(1, keepdim=True))
    average = fw.DecoupledLearner(problem(), fw.EmpiricalPredictor()).fit(X, calls)
    plans = {
        "sample average": average.decide(X_new, 40),
        "for the mean": fw.solve(problem(), mean).decision.numpy(),
        "for 40 scenarios": learner.decide(X_new, 40),
    }
    costs = {}
    for name, staff in plans.items():
        assert np.allclose(staff, np.round(staff))
        costs[name] = problem().cost(staff, calls_new).mean().item()
        print(f"{name:>16}: mean cost of a day {costs[name]:,.0f}")
    draw(calls_new, plans, folder / "05_staffing_with_integers.png")
    return costs


def draw(calls: np.ndarray, plans: dict[str, np.ndarray], path: Path) -> None:
    figure, panels = plt.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
    day = np.arange(min(len(calls), 28))
    for shift, axes in enumerate(panels):
        axes.bar(day, calls[day, shift] / CALLS_PER_PERSON, color="0.85", label="needed")
        for (name, staff), color in zip(plans.items(), ["0.5", "#D55E00", "#0072B2"], strict=True):
            axes.step(day, staff[day, shift], where="mid", color=color, lw=1.5, label=name)
        axes.set(ylabel="people")
        axes.set_title(SHIFTS[shift], loc="left", fontsize=10, fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
    panels[2].set(xlabel="day")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=4,
                  frameon=False)  # fmt: skip
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
