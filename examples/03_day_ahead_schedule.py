"""A day-ahead schedule of 48 half-hours with ramp limits, and a battery as recourse.

The battery's power is chosen when the load is observed. Uses the demand of Victoria if its file is
found (`fw.datasets.locate` says where it looks), and otherwise made-up loads of the same shape. Run
it with ``python examples/03_day_ahead_schedule.py``; it draws ``03_day_ahead_schedule.png``.
"""

from pathlib import Path

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import forewise as fw

HALF_HOURS = 48
RAMP, POWER, ENERGY = 0.35, 0.3, 1.2  # GW per half-hour, GW, GWh
SHORTAGE, EXCESS = 3.0, 1.0  # per squared GW


def problem() -> fw.CvxpyProblem:
    schedule = cp.Variable(HALF_HOURS, nonneg=True, name="schedule")
    load = cp.Parameter(HALF_HOURS, name="load")
    battery = cp.Variable(HALF_HOURS)  # what it gives; negative when it is charged
    missing = load - schedule - battery
    stored = 0.5 * ENERGY - 0.5 * cp.cumsum(battery)
    imbalance = SHORTAGE * cp.sum_squares(cp.pos(missing))
    imbalance += EXCESS * cp.sum_squares(cp.pos(-missing))
    rows = [
        cp.abs(cp.diff(schedule)) <= RAMP,
        cp.abs(battery) <= POWER,
        stored >= 0,
        stored <= ENERGY,
    ]
    return fw.CvxpyProblem(cp.Minimize(imbalance), rows, decision=schedule, outcome=load)


def loads() -> np.ndarray:
    """Days of 48 loads in GW: Victoria's if found, otherwise made up."""
    try:
        return fw.datasets.victoria().demand.to_numpy() / 1000
    except fw.MissingDataError as error:
        print(f"made-up demand of the same shape, because {error}")
        return made_up_loads(1096, seed=0)


def made_up_loads(n: int, seed: int) -> np.ndarray:
    """Two peaks a day, a level that drifts, correlated noise."""
    random = np.random.default_rng(seed)
    hour = np.arange(HALF_HOURS) / 2
    humps = np.exp(-(((hour - 8.5) / 3) ** 2)) + 1.3 * np.exp(-(((hour - 18) / 3.5) ** 2))
    level, days = 0.0, []
    for day in range(n):
        level = 0.8 * level + 0.25 * random.normal()
        noise = np.cumsum(random.normal(size=HALF_HOURS)) * 0.04
        days.append(4 + level + (1 if day % 7 < 5 else 0.5) * humps + noise)
    return np.array(days)


def contexts(days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Yesterday's load, that of a week ago, weekday and season, for each day from the eighth on."""
    day = np.arange(len(days))
    angle = 2 * np.pi * day / 365.25
    calendar = np.column_stack([np.eye(7)[day % 7], np.sin(angle), np.cos(angle)])
    return np.column_stack([days[6:-1], days[:-7], calendar[7:]]), days[7:]


def main(
    folder: Path = Path(), n_scenarios: int = 24, training: fw.Training | None = None
) -> dict[str, float]:
    X, y = contexts(loads())
    # Decide the days of the last year; learn from all days before it.
    X_new, y_new, X, y = X[-365:], y[-365:], X[:-365], y[:-365]
    predictor = fw.BayesianPredictor(training=training, random_state=0)
    learner = fw.DecoupledLearner(problem(), predictor).fit(X, y)
    scenarios = learner.policy_.predictor.sample(X_new, n_scenarios, random_state=0)
    mean = fw.Scenarios(scenarios.values.mean(1, keepdim=True))
    schedules = {
        "from the mean": fw.solve(problem(), mean).decision.numpy(),
        f"from {n_scenarios} scenarios": learner.decide(X_new, n_scenarios),
    }
    costs = {}
    for name, schedule in schedules.items():
        costs[name] = problem().cost(schedule, y_new).mean().item()
        print(f"{name:>17}: mean cost of imbalance a day {costs[name]:.3f}")
    draw(y_new[-1], scenarios.values[-1].numpy(), {name: s[-1] for name, s in schedules.items()},
         folder / "03_day_ahead_schedule.png")  # fmt: skip
    return costs


def draw(load: np.ndarray, draws: np.ndarray, schedules: dict[str, np.ndarray], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    hour = np.arange(HALF_HOURS) / 2
    axes.plot(hour, draws.T, color="0.85", lw=0.8)
    axes.plot([], [], color="0.75", lw=0.8, label="scenarios")
    for (name, schedule), color in zip(schedules.items(), ["#D55E00", "#0072B2"], strict=True):
        axes.plot(hour, schedule, color=color, lw=2, label=f"schedule {name}")
    axes.plot(hour, load, color="black", lw=1.2, ls="--", label="observed load")
    axes.set(xlabel="hour of the day", ylabel="GW", xlim=(0, 23.5), xticks=range(0, 24, 3))
    axes.set_title("The last day: shortage costs more than excess", loc="left", fontweight="bold")
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
