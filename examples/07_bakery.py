"""How much to bake: a Bayesian network against sample averages, in a rolling evaluation.

One model learns several series together, with store and product as inputs; every month it is
fitted on the past and decides the next. Uses the bakery's files if they are found
(`fw.datasets.locate` says where it looks), and otherwise made-up demand of the same shape. Run it
with ``python examples/07_bakery.py``; it draws ``07_bakery.png``.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import ConciseDateFormatter

import forewise as fw
from forewise.datasets import bakery, bakery_contexts

STORES = [2, 17, 21]
LEVEL = 0.75  # the share of days on which there should be enough


def demand_table() -> pd.DataFrame:
    """Some stores of the bakery, or made-up ones."""
    try:
        table = bakery()
    except fw.MissingDataError as error:
        print(f"made-up demand of the same shape, because {error}")
        return made_up_table(n_days=700, seed=0)
    return table[table["store"].isin(STORES)].reset_index(drop=True)


def made_up_table(n_days: int, seed: int) -> pd.DataFrame:
    """Demand with weekly seasonality, drift and store sizes, in the form of the real table."""
    random = np.random.default_rng(seed)
    week = np.array([0.9, 0.9, 0.95, 1.0, 1.2, 1.4, 0.8])
    parts = []
    for store in STORES:
        for product in (101, 109, 110):
            date = pd.date_range("2017-01-01", periods=n_days)
            mean = random.uniform(20, 80) * week[date.day_of_week]
            mean = mean * np.exp(0.1 * np.cumsum(random.normal(0, 0.15, n_days)))
            parts.append(pd.DataFrame({"date": date, "store": store, "product": product,
                                       "weekday": date.day_of_week,
                                       "demand": random.poisson(mean).astype(float)}))  # fmt: skip
    table = pd.concat(parts, ignore_index=True)
    flags = ["closed", "holiday", "holiday_in_2_days", "school_holiday"]
    table[[*flags, "promotion", "promotion_last_week"]] = False
    table["rain"] = 2.0 + 2.0 * np.sin(table["date"].dt.day_of_year)
    table["temperature"] = 10 - 10 * np.cos(2 * np.pi * table["date"].dt.day_of_year / 365)
    return table


def methods(
    problem: fw.Problem, contexts: pd.DataFrame, training: fw.Training | None
) -> dict[str, fw.Learner]:
    series = [name for name in contexts.columns if name.startswith(("store_", "product_"))]
    week = [name for name in contexts.columns if name.startswith("weekday_")]
    network = fw.BayesianPredictor(training=training, random_state=0)
    by_series, by_day = fw.GroupedPredictor(series), fw.GroupedPredictor([*series, *week])
    return {
        "SAA of the series": fw.DecoupledLearner(problem, by_series),
        "SAA per weekday": fw.DecoupledLearner(problem, by_day),
        "D-BNN, all series": fw.DecoupledLearner(problem, network),
    }


def main(
    folder: Path = Path(), training: fw.Training | None = None, n_months: int = 4
) -> dict[str, float]:
    problem = fw.Newsvendor(shortage=10 * LEVEL, excess=10 * (1 - LEVEL))
    table = demand_table()
    contexts = bakery_contexts(table)
    kept = ~table["closed"] & (contexts["demand_mean_28_missing"] == 0)
    contexts, demand, dates = contexts[kept], table["demand"][kept], table["date"][kept]
    # Decide the last months; learn from up to two years before each.
    days = (dates.max() - dates.min()).days - 31 * n_months
    evaluated = {}
    for name, learner in methods(problem, contexts, training).items():
        evaluated[name] = fw.evaluate_rolling(
            learner, contexts, demand, dates,
            min_train_days=days, max_train_days=730, validation_days=42, n_scenarios=128,
        )  # fmt: skip
    compared = fw.metrics.compare_rolling(evaluated, "SAA of the series")
    print(f"mean cost of a decision at service level {LEVEL}, and relative to SAA:")
    for name, row in compared.iterrows():
        low, high = (f"{100 * row[f'relative_{end}']:+.1f}" for end in ("lower", "upper"))
        print(f"{name:>18}: {row['cost']:6.1f}  {100 * row['relative']:+6.1f} % [{low}, {high}]")
    draw(evaluated, folder / "07_bakery.png")
    return {str(name): float(row["cost"]) for name, row in compared.iterrows()}


def draw(evaluated: dict[str, pd.DataFrame], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    for (name, table), color in zip(
        evaluated.items(), ["black", "#E69F00", "#0072B2"], strict=True
    ):
        weekly = table.set_index("date")["cost"].resample("W-SUN").mean()
        axes.plot(weekly.index, weekly, color=color, lw=1.6, label=name)
    axes.set(ylabel="mean cost of a decision", ylim=(0, None))
    axes.set_title("Weekly mean cost", loc="left", fontweight="bold")
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
