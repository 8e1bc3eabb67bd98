"""The farmer of Birge and Louveaux: sow before the weather is known, buy and sell after.

Every variable that is not the decision is recourse. Run it with
``python examples/02_farmer_with_recourse.py``; it draws ``02_farmer_with_recourse.png``.
"""

from pathlib import Path

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import forewise as fw

CROPS = ["wheat", "corn", "sugar beets"]


def problem() -> fw.CvxpyProblem:
    acres = cp.Variable(3, nonneg=True, name="acres")
    bought, sold = cp.Variable(2, nonneg=True), cp.Variable(2, nonneg=True)
    beets, surplus = cp.Variable(nonneg=True), cp.Variable(nonneg=True)
    yields = cp.Parameter(3, name="yields")  # tons per acre
    planting = np.array([150, 230, 260]) @ acres
    trade = np.array([238, 210]) @ bought - np.array([170, 150]) @ sold - 36 * beets - 10 * surplus
    rows = [
        cp.sum(acres) <= 500,
        cp.multiply(yields[:2], acres[:2]) + bought - sold >= np.array([200, 240]),  # for cattle
        beets + surplus <= yields[2] * acres[2],
        beets <= 6000,  # a quota; beyond it the price falls
    ]
    return fw.CvxpyProblem(cp.Minimize(planting + trade), rows, decision=acres, outcome=yields)


def main(folder: Path = Path()) -> dict[str, float]:
    farm = problem()
    yields = np.outer([1.2, 1.0, 0.8], [2.5, 3.0, 20.0])  # good, average, bad years
    scenarios = fw.Scenarios(yields[None])
    plans = {
        "for the average year": fw.solve(farm, fw.Scenarios(yields[None].mean(1, keepdims=True))),
        "for the mean profit": fw.solve(farm, scenarios),
        "for the worst year": fw.solve(farm.with_risk(fw.WorstCase()), scenarios),
    }
    acres = {name: plan.decision[0].numpy() for name, plan in plans.items()}
    profits = {
        name: -farm.cost(np.tile(field, (3, 1)), yields).numpy() for name, field in acres.items()
    }
    for name, profit in profits.items():
        sown = ", ".join(
            f"{crop} {area:.0f}" for crop, area in zip(CROPS, acres[name], strict=True)
        )
        print(f"{name:>21}: {sown} acres; profit {profit.mean():9,.0f} on average")
    figures = {
        "profit": -plans["for the mean profit"].objective.item(),
        "value of the stochastic solution": fw.metrics.value_of_stochastic_solution(
            farm, scenarios
        ).item(),
        "value of perfect information": fw.metrics.expected_value_of_perfect_information(
            farm, scenarios
        ).item(),
    }
    for name, value in figures.items():
        print(f"{name:>33}: {value:9,.0f}")
    draw(acres, profits, folder / "02_farmer_with_recourse.png")
    return figures


def draw(acres: dict[str, np.ndarray], profits: dict[str, np.ndarray], path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    place = np.arange(len(acres))
    start = np.zeros(len(acres))
    for crop, color in zip(range(3), ["#E69F00", "#F0E442", "#CC79A7"], strict=True):
        area = np.array([field[crop] for field in acres.values()])
        left.barh(place, area, left=start, color=color, label=CROPS[crop], height=0.6)
        start += area
    left.set(xlabel="acres", yticks=place, yticklabels=list(acres))
    left.invert_yaxis()
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    years = ["good", "average", "bad"]
    for name, profit, color in zip(profits, profits.values(), ["0.6", "#0072B2", "#D55E00"],
                                   strict=True):  # fmt: skip
        right.plot(years, profit / 1000, "o-", color=color, label=name)
    right.set(ylabel="profit, thousands")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
