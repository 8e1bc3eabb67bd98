"""A day-ahead schedule of 48 half-hours, with ramp limits, and a battery that helps on the day.

The battery is recourse: its power is chosen when the load is seen. Demand of Victoria is taken
where its file is (`forewise data list` says where it is sought); otherwise a load is made up. Run
it with ``python examples/03_day_ahead_schedule.py``; it draws ``03_day_ahead_schedule.png``.
"""

from pathlib import Path

import cvxpy as cp
import numpy as np
from sklearn.linear_model import RidgeCV

import forewise as fw

HALF_HOURS = 48
RAMP, POWER, ENERGY = 0.35, 0.3, 1.2  # GW per half-hour, GW, GWh
SHORTAGE, EXCESS = 3.0, 1.0  # per squared GW: too little is worse than too much


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
    return fw.CvxpyProblem(
        cp.Minimize(imbalance + 0.1 * cp.sum(schedule)), rows, decision=schedule, outcome=load
    )


def made_up_loads(n: int, seed: int) -> np.ndarray:
    """Days of a load in GW: a double hump, a level that drifts, noise that lasts."""
    random = np.random.default_rng(seed)
    hour = np.arange(HALF_HOURS) / 2
    humps = np.exp(-(((hour - 8.5) / 3) ** 2)) + 1.3 * np.exp(-(((hour - 18) / 3.5) ** 2))
    level, loads = 0.0, []
    for day in range(n):
        level = 0.8 * level + 0.25 * random.normal()
        noise = np.cumsum(random.normal(size=HALF_HOURS)) * 0.04
        loads.append(4 + level + (1 if day % 7 < 5 else 0.5) * humps + noise)
    return np.array(loads)


def contexts(loads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Yesterday's load, that of a week ago and the weekday, for each day from the eighth on."""
    weekday = np.eye(7)[np.arange(len(loads)) % 7]
    X = np.column_stack([loads[6:-1], loads[:-7], weekday[7:]])
    return X, loads[7:]


def main(folder: Path = Path(), loads: np.ndarray | None = None, n_days: int = 10) -> dict:
    X, y = contexts(made_up_loads(500, seed=0) if loads is None else loads)
    X_new, y_new, X, y = X[-n_days:], y[-n_days:], X[:-n_days], y[:-n_days]
    forecast = RidgeCV(np.logspace(-2, 3, 11))
    policies = {
        "point forecast": fw.DecoupledLearner(problem(), fw.ResidualPredictor(forecast)),
        "24 scenarios": fw.DecoupledLearner(problem(), fw.ResidualPredictor(forecast)),
    }
    costs, schedules = {}, {}
    for name, learner in policies.items():
        learner.fit(X, y)
        schedules[name] = learner.decide(X_new, 24)
        costs[name] = problem().cost(schedules[name], y_new).mean().item()
        print(f"{name:>15}: mean cost of a day {costs[name]:.3f}")
    return costs


if __name__ == "__main__":
    main()
