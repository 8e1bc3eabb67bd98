"""Day-ahead schedules of electricity from calendar, past loads and weather: a rolling evaluation.

The schedule has ramp limits; an hourly battery is recourse. Uses the demand of Victoria if its file
is found (`fw.datasets.locate` says where it looks), and otherwise made-up demand of the same shape.
Run it with ``python examples/08_electricity.py``; it draws ``08_electricity.png``.
"""

from collections.abc import Callable
from pathlib import Path

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import ConciseDateFormatter
from sklearn.base import clone

import forewise as fw
from forewise.datasets import Victoria, victoria, victoria_contexts
from forewise.policy import ScenarioPolicy

RAMP, POWER, ENERGY = 0.35, 0.3, 1.2  # GW per half-hour, GW, GWh


def day_ahead_problem() -> fw.CvxpyProblem:
    """Squared imbalance in GW, of which shortage costs three times as much as excess."""
    schedule = cp.Variable(48, nonneg=True, name="schedule")
    load = cp.Parameter(48, name="load")
    battery = cp.Variable(24)  # hourly output; negative when charging
    missing = load - schedule - np.kron(np.eye(24), np.ones((2, 1))) @ battery
    stored = 0.5 * ENERGY - cp.cumsum(battery)
    cost = 3 * cp.sum_squares(cp.pos(missing)) + cp.sum_squares(cp.pos(-missing))
    rows = [cp.abs(cp.diff(schedule)) <= RAMP, cp.abs(battery) <= POWER]
    rows += [stored >= 0, stored <= ENERGY]
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=schedule, outcome=load)


def demand() -> Victoria:
    """Demand and temperature of Victoria, or made-up ones."""
    try:
        return victoria()
    except fw.MissingDataError as error:
        print(f"made-up demand of the same shape, because {error}")
        return made_up_demand(400, seed=0)


def made_up_demand(n: int, seed: int) -> Victoria:
    """Two peaks a day, lower on weekends, higher on hot and on cold days."""
    random = np.random.default_rng(seed)
    hour = np.arange(48) / 2
    humps = np.exp(-(((hour - 8.5) / 3) ** 2)) + 1.3 * np.exp(-(((hour - 18) / 3.5) ** 2))
    warm = np.zeros(n)
    for day in range(1, n):
        warm[day] = 0.8 * warm[day - 1] + 2.5 * random.normal()
    summer = np.cos(2 * np.pi * np.arange(n) / 365)
    temperature = (17 + 6 * summer + warm)[:, None] + 5 * np.sin(2 * np.pi * (hour - 9) / 24)
    dates = pd.date_range("2013-01-01", periods=n, name="date")
    week = np.where(dates.day_of_week < 5, 1.0, 0.5)[:, None]
    noise = 0.04 * random.normal(size=(n, 48)).cumsum(axis=1)
    load = 4 + week * humps + 0.08 * np.abs(temperature - 18) + noise
    half_hours = pd.DataFrame(
        {
            "time": pd.date_range(dates[0], periods=48 * n, freq="30min", tz="UTC"),
            "date": dates.repeat(48),
            "half_hour": np.tile(np.arange(48), n),
            "demand": 1000 * load.ravel(),
            "temperature": temperature.ravel(),
            "holiday": False,
        }
    )
    days = pd.DataFrame({"weekday": dates.day_of_week, "holiday": False, "measured": 48}, dates)
    clock = [f"{h // 2:02d}:{h % 2 * 30:02d}" for h in range(48)]
    by_day = [pd.DataFrame(table, dates, clock) for table in (1000 * load, temperature)]
    return Victoria(half_hours, *by_day, days)


def main(
    folder: Path = Path(),
    n_days: int = 28,
    training: fw.Training | None = None,
    n_scenarios: int = 8,
) -> dict[str, float]:
    data = demand()
    contexts = victoria_contexts(data).dropna()  # the first week lacks a week before
    loads = data.demand.loc[contexts.index] / 1000  # in GW
    problem = day_ahead_problem()
    network = fw.BayesianPredictor(training=training, random_state=0)
    predictors = {
        "SAA": fw.EmpiricalPredictor(),
        "kNN-SAA": fw.NeighborPredictor(n_neighbors=20),
        "D-BNN": network,
    }

    def learning(predictor: fw.Predictor) -> Callable[..., ScenarioPolicy]:
        """Fit, then decide, as a DecoupledLearner does, without a validation cost per epoch."""
        return lambda X, y: ScenarioPolicy(problem, clone(predictor).fit(X, y))

    # The last days are decided two weeks at a time, from all days before.
    settings = {"window": 14, "min_train_days": len(loads) - n_days, "n_scenarios": n_scenarios}
    evaluated = {
        name: fw.evaluate_rolling(
            learning(predictor), contexts, loads, contexts.index, problem=problem, **settings
        )
        for name, predictor in predictors.items()
    }
    compared = fw.metrics.compare_rolling(evaluated, "SAA")
    print("mean cost of a day's imbalance, and relative to SAA:")
    for name, row in compared.iterrows():
        low, high = (f"{100 * row[f'relative_{end}']:+.1f}" for end in ("lower", "upper"))
        print(f"{name:>8}: {row['cost']:7.3f}  {100 * row['relative']:+6.1f} % [{low}, {high}]")
    draw(loads, evaluated, folder / "08_electricity.png")
    return {str(name): float(row["cost"]) for name, row in compared.iterrows()}


def draw(loads: pd.DataFrame, evaluated: dict[str, pd.DataFrame], path: Path) -> None:
    figure, (top, below) = plt.subplots(2, figsize=(8, 6), layout="constrained")
    hour = np.arange(48) / 2
    day = next(iter(evaluated.values())).index[-1]
    for (name, table), color in zip(
        evaluated.items(), ["black", "#E69F00", "#0072B2"], strict=True
    ):
        top.plot(table["date"], table["cost"], color=color, lw=1.4, label=name)
        schedule = table.filter(like="decision_").loc[day]
        below.plot(hour, schedule, color=color, lw=1.6, label=f"schedule, {name}")
    below.plot(hour, loads.loc[day], color="0.5", lw=1.4, ls="--", label="observed load")
    top.set(ylabel="cost of the day", ylim=(0, None))
    top.set_title("Cost of each day's schedule", loc="left", fontweight="bold")
    below.set(xlabel="hour of the last day", ylabel="GW", xlim=(0, 23.5), xticks=range(0, 24, 3))
    top.xaxis.set_major_formatter(ConciseDateFormatter(top.xaxis.get_major_locator()))
    for axes in (top, below):
        axes.legend(frameon=False, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
