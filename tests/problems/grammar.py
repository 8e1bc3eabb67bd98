"""Random two-stage problems in CVXPY, over a grammar of atoms, and their extensive forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

import forewise as fw


@dataclass(frozen=True, eq=False)
class DrawnProblem:
    """The deterministic problem as it was drawn."""

    build: Any  # (decision, recourse, outcome, given) -> (cost, constraints)
    n: int
    k: int
    n_y: int
    n_g: int

    def problem(self) -> fw.CvxpyProblem:
        z, u = cp.Variable(self.n, name="z"), cp.Variable(max(self.k, 1), name="u")
        y = cp.Parameter(self.n_y, name="y")
        g = cp.Parameter(self.n_g, name="g") if self.n_g else None
        cost, constraints = self.build(z, u, y, g)
        return fw.CvxpyProblem(cp.Minimize(cost), constraints, decision=z, outcome=y, given=g)

    def extensive(self, values: np.ndarray, weights: np.ndarray, given: Any, z: Any = None) -> Any:
        """CVXPY's own program of one context; with `z`, of that decision."""
        chosen = cp.Variable(self.n) if z is None else cp.Constant(z)
        total, rows = 0, []
        for value, weight in zip(values, weights, strict=True):
            u = cp.Variable(max(self.k, 1))
            cost, constraints = self.build(chosen, u, cp.Constant(value), given)
            total, rows = total + weight * cost, rows + constraints
        return cp.Problem(cp.Minimize(total), rows)


def draw_problem(rng: np.random.Generator) -> DrawnProblem:
    """A feasible, bounded problem: bounded decisions, recourse that can take any imbalance."""
    n, k, n_y = int(rng.integers(1, 4)), int(rng.integers(0, 3)), int(rng.integers(1, 4))
    n_g = int(rng.integers(0, 2))
    count = int(rng.integers(1, 4))
    kinds = rng.integers(0, 11, count)
    draws = [
        {"z": rng.normal(size=(3, n)), "u": rng.normal(size=(3, k)), "y": rng.normal(size=(3, n_y)),
         "c": rng.normal(size=3), "Q": _gram(rng, 3), "w": rng.uniform(0.3, 2)}
        for _ in range(count)
    ]  # fmt: skip
    bilinear = rng.normal(size=(n_y, n)) * (rng.random() < 0.4)
    coefficient = rng.normal(size=(n_y, n)) * (rng.random() < 0.4)
    slope, balance = rng.normal(size=n), rng.normal(size=(k, n))
    curved = rng.random() < 0.7
    budget = rng.random() < 0.5

    def build(z: Any, u: Any, y: Any, g: Any) -> tuple[Any, list[Any]]:
        cost = slope @ z
        for kind, draw in zip(kinds, draws, strict=True):
            inner = draw["z"] @ z - draw["y"] @ y + draw["c"]
            if k:
                inner = inner + draw["u"] @ u
            cost = cost + draw["w"] * _atom(kind, inner, draw)
        if bilinear.any():
            cost = cost + (y @ bilinear) @ z
        rows = [z <= 2, z >= -2]
        if coefficient.any():
            # A loss that depends on the outcome times the decision.
            cost = cost + cp.pos((y @ coefficient) @ z - 0.5)
        if curved:
            cost = cost + cp.sum_squares(z)
        if k:
            cost = cost + (cp.sum_squares(u) if curved else cp.norm1(u))
            slack = cp.sum(u) if k == 1 else u[0] + 2 * u[1]
            rows.append(slack == balance[0] @ z + y[0])
        else:
            cost = cost + cp.sum_squares(u)
        if g is not None:
            rows.append(cp.sum(z) <= g[0])
            cost = cost + 0.3 * cp.abs(z[0] - g[0])
        elif budget:
            rows.append(cp.sum(z) <= 1)
        return cost, rows

    return DrawnProblem(build, n, k, n_y, n_g)


def _atom(kind: int, x: Any, draw: dict[str, Any]) -> Any:
    """A convex cost of a vector of three."""
    return [
        lambda: cp.sum(cp.abs(x)),
        lambda: cp.sum(cp.pos(x)),
        lambda: cp.maximum(x[0], 2 * x[1] - 1, x[2]),
        lambda: cp.norm1(x),
        lambda: cp.norm_inf(x),
        lambda: cp.sum(cp.huber(x)),
        lambda: cp.sum_squares(x),
        lambda: cp.quad_form(x, draw["Q"]),
        lambda: cp.sum_largest(x, 2),
        lambda: cp.max(cp.hstack([x, 0.5 * x + 0.1, -0.2 * x])),
        lambda: cp.quad_form(cp.pos(x), np.abs(draw["Q"]) + 2 * np.diag(np.diag(draw["Q"]))),
    ][kind]()


def _gram(rng: np.random.Generator, n: int) -> np.ndarray:
    root = rng.normal(size=(n, n))
    return root @ root.T
