"""Problems with norms, logarithms and exponentials, and their extensive forms in CVXPY."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

import forewise as fw

N = 3
PRICE = np.array([0.3, 0.5, 0.4])
ROOT = np.array([[1.0, 0.4, 0.0], [0.0, 0.8, -0.3], [0.0, 0.0, 1.2]])
TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


@dataclass(frozen=True, eq=False)
class Case:
    """A deterministic problem: (decision, recourse, outcome) to (cost, constraints)."""

    build: Any
    n_recourse: int = 0
    positive: bool = True  # outcomes

    def problem(self) -> fw.CvxpyProblem:
        z, u = cp.Variable(N, name="z"), cp.Variable(max(self.n_recourse, 1), name="u")
        y = cp.Parameter(N, name="y")
        cost, rows = self.build(z, u, y)
        return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=z, outcome=y)

    def outcomes(self, rng: np.random.Generator, *shape: int) -> np.ndarray:
        return rng.uniform(0.3, 2, (*shape, N)) if self.positive else rng.normal(size=(*shape, N))

    def best(self, values: np.ndarray, weights: np.ndarray, decision: Any = None) -> float:
        """CVXPY's own optimum of one context; with a decision, of that one."""
        z = cp.Variable(N) if decision is None else cp.Constant(decision)
        total, rows = 0, []
        for value, weight in zip(values, weights, strict=True):
            u = cp.Variable(max(self.n_recourse, 1))
            cost, more = self.build(z, u, cp.Constant(value))
            total, rows = total + weight * cost, rows + more
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tolerances not quite reached are close enough
            return float(cp.Problem(cp.Minimize(total), rows).solve(solver=cp.CLARABEL, **TIGHT))


CASES = {
    "norm": Case(lambda z, u, y: (cp.norm(z - y) + 0.1 * cp.sum_squares(z), []), positive=False),
    "log utility": Case(lambda z, u, y: (-cp.log(y @ z), [cp.sum(z) == 1, z >= 0])),
    "exponential cost": Case(
        lambda z, u, y: (cp.sum(cp.exp(y - z)) + cp.sum(cp.exp(0.5 * (z - y))), []), positive=False
    ),
    "log-sum-exp": Case(
        lambda z, u, y: (cp.log_sum_exp(z - y) - 0.3 * cp.sum(z) + cp.sum_squares(z), [])
    ),
    "quadratic constraint": Case(
        lambda z, u, y: (y @ z + cp.sum(cp.pos(y - z)), [cp.sum_squares(ROOT @ z) <= 1])
    ),
    "entropic risk": Case(
        lambda z, u, y: (cp.exp(-y @ z), [cp.sum(z) <= 1, cp.norm(z) <= 2])
    ),
    "square root": Case(
        lambda z, u, y: (
            PRICE @ z - cp.sum(cp.sqrt(z + 1)) + 3 * cp.sum(cp.pos(y - z)), [z >= 0]
        )
    ),
    "quadratic over linear": Case(
        lambda z, u, y: (
            cp.quad_over_lin(z - y, 1 + cp.sum(z) / 10) + PRICE @ z, [z >= 0, z <= 4]
        )
    ),
    "norm of recourse": Case(
        lambda z, u, y: (
            PRICE @ z + 2 * cp.norm(u) + cp.sum(u), [u >= y - z, z >= 0, u >= 0]
        ),
        n_recourse=N,
    ),
    "recourse in a ball": Case(
        lambda z, u, y: (
            PRICE @ z + 3 * cp.norm1(u), [cp.sum_squares(z + u - y) <= 1, z >= 0]
        ),
        n_recourse=N,
    ),
    "columns of a matrix": Case(
        lambda z, u, y: (
            cp.sum(cp.norm(cp.vstack([z - y, cp.reshape(u, (2, 3), order="F")]), axis=0))
            + cp.sum_squares(u - 1) + cp.sum_squares(z) / 5,
            [],
        ),
        n_recourse=6,
    ),
    "power": Case(
        lambda z, u, y: (cp.sum(cp.power(cp.pos(y - z), 1.5)) + PRICE @ z, [z >= 0])
    ),
    "both kinds and a known part": Case(
        lambda z, u, y: (
            cp.log_sum_exp(ROOT @ z - y[0]) + cp.norm(z[:2] - 1) + cp.max(z) + cp.sum_squares(u),
            [cp.sum(z) == y[1] + cp.sum(u)],
        ),
        n_recourse=2,
        positive=False,
    ),
}  # fmt: skip


def draw_case(rng: np.random.Generator) -> Case:
    """A random sum of atoms with cones, bounded, with recourse that takes any imbalance."""
    kinds = rng.choice(6, size=int(rng.integers(1, 4)), replace=False)
    maps = [(rng.normal(size=(3, N)), rng.normal(size=(3, N)), rng.normal(size=3)) for _ in kinds]
    k = int(rng.integers(0, 3))
    pull, slope = rng.normal(size=(3, max(k, 1))), rng.normal(size=N)
    ball = rng.random() < 0.5

    def build(z: Any, u: Any, y: Any) -> tuple[Any, list[Any]]:
        cost, rows = slope @ z + 0.5 * cp.sum_squares(z), [z <= 2, z >= -2]
        for kind, (of_z, of_y, constant) in zip(kinds, maps, strict=True):
            inner = of_z @ z - of_y @ y + constant
            if k:
                inner = inner + pull @ u
            cost = cost + [
                lambda x: cp.norm(x),
                lambda x: cp.log_sum_exp(x),
                lambda x: cp.sum(cp.exp(0.3 * x)),
                lambda x: -cp.sum(cp.sqrt(cp.pos(0) + 12 + x[:1])),
                lambda x: cp.sum(cp.logistic(x)),
                lambda x: cp.quad_over_lin(x, 5 + z[0]),
            ][kind](inner)
        if ball:
            rows.append(cp.norm(z - 0.3) <= 1.5)
        cost = cost + cp.sum_squares(u)
        return cost, rows

    return Case(build, k, positive=False)
