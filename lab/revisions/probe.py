"""Decisions, gradients, draws and scores of one revision, written to a file of arrays.

Run by `compare.py` with an installed revision.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import torch

import forewise as fw
from forewise.predictors import FourierFeatures, MeanFieldPredictor, OffSupportFallback

torch.set_num_threads(1)


FOUND: dict[str, np.ndarray] = {}


def keep(name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    FOUND[name] = np.asarray(value)


def keep_solution(name: str, problem: Any, values: np.ndarray, solver: Any = None) -> None:
    """Decision, objective, multipliers, and the gradients of both in the scenarios."""
    leaf = torch.tensor(values, requires_grad=True)
    solution = fw.solve(problem, fw.Scenarios(leaf), solver, on_failure="return")
    keep(f"{name}/status", [str(status) for status in solution.status])
    keep(f"{name}/decision", solution.decision)
    keep(f"{name}/objective", solution.objective)
    keep(f"{name}/gap", solution.gap)
    for multiplier in ("inequality", "equality", "scenario_inequality", "scenario_equality"):
        keep(f"{name}/{multiplier}", getattr(solution.duals, multiplier))
    for part in (solution.decision, solution.objective):
        if part.requires_grad:
            (gradient,) = torch.autograd.grad(part.nansum(), leaf, retain_graph=True)
            keep(f"{name}/gradient of {'z' if part.ndim == 2 else 'value'}", gradient)


def solving(random: np.random.Generator) -> None:
    demand = random.gamma(9.0, 2.0, (6, 24, 3))
    quadratic = fw.QuadraticNewsvendor(
        1.0, 2.0, 3.0, 40.0, 1.0, 5.0, price=[4.0, 2.0, 3.0], budget=120.0
    )
    returns = random.normal(0.3, 1.0, (6, 32, 5))
    portfolio = fw.Portfolio([0.3, 0.2, 0.25, 0.4, 0.1], 1.0)
    keep_solution("newsvendor", fw.Newsvendor(3.0, 1.0), demand)
    keep_solution("quadratic newsvendor", quadratic, demand)
    keep_solution(
        "quadratic newsvendor, interior point", quadratic, demand, fw.InteriorPointSolver()
    )
    keep_solution("portfolio", portfolio, returns)
    keep_solution("portfolio, large", portfolio, returns * 1e8)
    keep_solution("portfolio, tail", portfolio.with_risk(fw.CVaR(0.8)), returns)
    keep_solution("quadratic tail", quadratic.with_risk(fw.MeanCVaR(0.5, 0.8)), demand)
    for name, problem in written().items():
        keep_solution(name, problem, demand[:3, :8])
    outcome = demand[:, 0]
    decision = outcome.mean(1, keepdims=True).repeat(3, 1)
    keep("cost", fw.Newsvendor(3.0, 1.0).cost(decision, outcome))
    keep("regret", fw.regret(fw.Newsvendor(3.0, 1.0), decision, outcome))
    keep("crps", fw.metrics.crps(fw.Scenarios(demand), outcome))


def written() -> dict[str, Any]:
    """Problems in CVXPY: recourse, cones, integers, a chance."""
    y = cp.Parameter(3, name="y")
    z = cp.Variable(3, nonneg=True, name="z")
    u = cp.Variable((3, 2), nonneg=True, name="u")
    shortage = 3 * cp.sum(cp.pos(y - z)) + cp.sum_squares(cp.pos(z - y))
    moved = cp.Minimize(cp.sum(z) + 5 * cp.sum(cp.pos(y - z - u[:, 0] + u[:, 1])) + cp.sum(u))
    integer = cp.Variable(3, integer=True, name="n")
    rows = [cp.sum(z) <= 60, cp.norm1(z - 10) <= 30]
    return {
        "CVXPY": fw.CvxpyProblem(cp.Minimize(shortage), rows, decision=z, outcome=y),
        "recourse": fw.CvxpyProblem(
            moved, [cp.sum(u[:, 0]) == cp.sum(u[:, 1])], decision=z, outcome=y
        ),
        "cones": fw.CvxpyProblem(
            cp.Minimize(cp.norm(z - y) + cp.sum(cp.exp(-z / 10))), [], decision=z, outcome=y
        ),
        "integers": fw.CvxpyProblem(
            cp.Minimize(cp.sum(integer) + 3 * cp.sum(cp.pos(y - integer))),
            [integer >= 0, integer <= 40], decision=integer, outcome=y,
        ),
        "chance": fw.CvxpyProblem(
            cp.Minimize(cp.sum(z)), [fw.chance(z[0] >= y[0], 0.8)], decision=z, outcome=y
        ),
    }  # fmt: skip


def learning(folder: Path) -> None:
    data = fw.datasets.nv1(300, random_state=0)
    X, y, new = data.X[:240], data.y[:240], data.X[240:]
    keep("data", np.column_stack([data.X, data.y]))
    brief = {"training": fw.Training(epochs=4, progress=False), "random_state": 0}
    predictors = {
        "Bayesian": MeanFieldPredictor((16, 8), encoding=FourierFeatures(3), **brief),
        "off support": MeanFieldPredictor((16,), off_support=OffSupportFallback(), **brief),
        "mixture": fw.MixturePredictor(2, (16,), **brief),
        "point": fw.PointPredictor((16,), **brief),
        "ensemble": fw.EnsemblePredictor(
            fw.GaussianPredictor((8,), training=brief["training"]), 3, random_state=0
        ),
        "process": fw.GaussianProcessPredictor(random_state=0),
        "empirical": fw.EmpiricalPredictor(),
        "neighbours": fw.NeighborPredictor(),
        "forest": fw.ForestPredictor(random_state=0),
        "boosting": fw.BoostingPredictor(random_state=0),
        "Bayesian for tables": fw.BayesianPredictor((16,), **brief),
        "quantile boosting": fw.QuantileBoostingPredictor(random_state=0),
    }
    problem = fw.Newsvendor(100.0, 900.0)
    for name, predictor in predictors.items():
        learner = fw.DecoupledLearner(problem, predictor).fit(X, y)
        keep(f"{name}/scenarios", learner.policy_.predictor.sample(new, 16, random_state=1).values)
        keep(f"{name}/decision", learner.decide(new))
        learner.policy_.save(folder / f"policy {name}")
    plain, network = fw.GaussianPredictor((16,), **brief), MeanFieldPredictor((16,), **brief)
    combined = fw.CombinedLearner(problem, network, pretraining=False).fit(X, y)
    warm = fw.CombinedLearner(problem, plain, training=brief["training"]).fit(X, y)
    direct = fw.DirectLearner(problem, fw.PointPredictor((16,), **brief)).fit(X, y)
    for name, learner in {"combined": combined, "warm": warm, "direct": direct}.items():
        keep(f"{name}/decision", learner.decide(new))
        keep(f"{name}/loss", [r["loss"] for r in learner.history_ if "loss" in r])
    nvqp = fw.datasets.nvqp(80, random_state=0)
    through = fw.CombinedLearner(fw.datasets.nvqp_problem(), network, pretraining=False)
    keep("NVQP/decision", through.fit(nvqp.X[:60], nvqp.y[:60]).decide(nvqp.X[60:], 32))


def stored(folder: Path) -> None:
    """Decisions of the policies that the other revision has stored."""
    new = fw.datasets.nv1(300, random_state=0).X[240:]
    for policy in sorted(folder.glob("policy *")):
        keep(f"{policy.name.removeprefix('policy ')}/decision", fw.load_policy(policy).decide(new))


if __name__ == "__main__":
    task, place = sys.argv[1], Path(sys.argv[2])
    if task == "stored":
        stored(place)
    else:
        solving(np.random.default_rng(0))
        learning(place)
    np.savez(place / f"{sys.argv[3]}.npz", **FOUND)
