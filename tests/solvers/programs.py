"""Random scenario programs whose solutions, or lack of one, are known by construction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forewise import ScenarioProgram, Solution
from forewise.problems.bounds import BoundRows
from forewise.solvers.bounds import joined_duals
from forewise.solvers.interior_point.core import Points, as_arrays
from forewise.solvers.interior_point.verification import Residuals, residuals_of_points


def residuals(program: ScenarioProgram, solution: Solution) -> Residuals:
    """The optimality conditions of a solution, recomputed from the raw data."""
    bounds = BoundRows.of(program)
    program, duals = bounds.added(program), joined_duals(bounds, solution.duals)
    points = (
        *(solution.decision, solution.recourse, duals.inequality, duals.scenario_inequality),
        *(duals.equality, duals.scenario_equality),
    )
    arrays = Points(*(np.ascontiguousarray(part.detach().numpy()) for part in points))
    return residuals_of_points(as_arrays(program), arrays, solution.decision.device)


@dataclass(frozen=True)
class Shape:
    """Sizes of a random program."""

    B: int
    M: int
    n: int
    k: int
    g: int
    e: int
    t: int
    r: int
    s: int


def random_shape(rng: np.random.Generator, B: int) -> Shape:
    """Any shape, from a single row to several of each kind."""
    n, k = int(rng.integers(1, 7)), int(rng.integers(0, 5))
    r = int(rng.integers(0, 6)) if k else int(rng.integers(0, 3))
    return Shape(
        B=B,
        M=int(rng.integers(1, 9)),
        n=n,
        k=k,
        g=int(rng.integers(0, 6)),
        e=int(rng.integers(0, (n + 1) // 2)) if n > 1 else 0,
        t=int(rng.integers(0, r + 1)) if k else r,
        r=r,
        s=int(rng.integers(0, k)) if k > 1 else 0,
    )


@dataclass(frozen=True)
class Planted:
    """A program and its planted optimum."""

    program: ScenarioProgram
    z: torch.Tensor
    u: torch.Tensor
    objective: torch.Tensor


def planted_program(
    rng: np.random.Generator,
    shape: Shape,
    *,
    linear: bool = False,
    degenerate: bool = False,
    weighted: bool = True,
    recourse: str = "dense",
) -> Planted:
    """A feasible, bounded program built around a solution of its optimality conditions.

    With `degenerate`, some rows have neither slack nor multiplier. With "separable" recourse, every
    scenario row has one recourse variable and costs are diagonal. With "mixed" recourse, some
    variables have a row of their own, perhaps bounds and no other row, and the rest is dense.
    """
    B, M, n, k = shape.B, shape.M, shape.n, shape.k
    draw = lambda *size: rng.normal(size=size)  # noqa: E731
    weights = rng.uniform(0.2, 1.0, (B, M)) if weighted else np.ones((B, M))
    weights /= weights.sum(1, keepdims=True)
    P = np.zeros((B, n, n)) if linear else _gram(draw(B, n, n)) + 0.1 * np.eye(n)
    D = np.zeros((B, M, k, k)) if linear else _gram(draw(B, M, k, k)) + 0.1 * np.eye(k)
    G, E = draw(B, shape.g, n), draw(B, shape.e, n)
    T, W = draw(B, M, shape.t, n), draw(B, M, shape.r, k)
    F, V = draw(B, M, shape.s, n), draw(B, M, shape.s, k)
    if recourse == "separable" and k:
        W *= np.eye(k)[rng.permutation(np.arange(max(shape.r, k)) % k)[: shape.r]]
        D = D * np.eye(k)
    if recourse == "mixed" and k:
        there, alone = _mixed_recourse(rng, shape)
        W *= there
        V *= ~alone
        D *= np.eye(k, dtype=bool) | ~(alone[:, None] | alone)
    z, u = draw(B, n), draw(B, M, k)
    slack, dual = _complementary(rng, (B, shape.g), degenerate)
    slack_j, dual_j = _complementary(rng, (B, M, shape.r), degenerate)
    nu, nus = draw(B, shape.e), draw(B, M, shape.s)
    T_full = np.concatenate([T, np.zeros((B, M, shape.r - shape.t, n))], axis=2)
    gradient_z = np.einsum("bij,bj->bi", P, z) + np.einsum("bgi,bg->bi", G, dual)
    gradient_z += np.einsum("bei,be->bi", E, nu) + np.einsum("bmri,bmr->bi", T_full, dual_j)
    gradient_z += np.einsum("bmsi,bms->bi", F, nus)
    gradient_u = np.einsum("bmri,bmr->bmi", W, dual_j) + np.einsum("bmsi,bms->bmi", V, nus)
    gradient_u = gradient_u / weights[..., None] + np.einsum("bmij,bmj->bmi", D, u)
    program = ScenarioProgram(
        weights=weights, P=P, q=-gradient_z, G=G, E=E, D=D, d=-gradient_u, T=T, W=W, F=F, V=V,
        h=np.einsum("bgi,bi->bg", G, z) + slack,
        e=np.einsum("bei,bi->be", E, z),
        r=np.einsum("bmri,bi->bmr", T_full, z) + np.einsum("bmri,bmi->bmr", W, u) + slack_j,
        s=np.einsum("bmsi,bi->bms", F, z) + np.einsum("bmsi,bmi->bms", V, u),
    )  # fmt: skip
    z, u = torch.tensor(z), torch.tensor(u)
    return Planted(program, z, u, program.objective(z, u))


def _mixed_recourse(rng: np.random.Generator, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the entries that are there, ``(r, k)``, and of variables that stand alone, ``(k,)``.

    Half of the variables, and no more than there are rows, have one of the first rows for
    themselves; some of the other rows are bounds on them.
    """
    alone = np.arange(shape.k) < min((shape.k + 1) // 2, shape.r)
    rng.shuffle(alone)
    there = np.tile(~alone, (shape.r, 1)) & (rng.random((shape.r, shape.k)) < 0.7)
    rows = rng.permutation(shape.r)
    variables = np.flatnonzero(alone)
    there[rows[: len(variables)], variables] = True
    for row in rows[len(variables) :]:
        if row >= shape.t and (rng.integers(2) or not there[row].any()):
            there[row] = np.arange(shape.k) == rng.choice(variables)
    return there, alone


def infeasible_program(rng: np.random.Generator, shape: Shape) -> ScenarioProgram:
    """A planted program with two rows that contradict each other, in a stage drawn at random."""
    program = planted_program(rng, shape, linear=bool(rng.integers(2))).program
    gap = float(10 ** rng.uniform(-2, 1))
    blocks = {name: block for name, block in program.blocks().items() if block.numel()}
    B, M = program.weights.shape
    if shape.k and rng.integers(2):
        T, W = torch.randn(B, M, 1, shape.n).double(), torch.randn(B, M, 1, shape.k).double()
        r = torch.randn(B, M, 1).double()
        blocks["T"] = torch.cat([T, -T, program.T], dim=2)
        blocks["W"] = torch.cat([W, -W, program.W], dim=2)
        blocks["r"] = torch.cat([r, -r - gap, program.r], dim=2)
    else:
        G, h = torch.randn(B, 1, shape.n).double(), torch.randn(B, 1).double()
        blocks["G"] = torch.cat([G, -G, program.G], dim=1)
        blocks["h"] = torch.cat([h, -h - gap, program.h], dim=1)
    return ScenarioProgram(**blocks)


def unbounded_program(rng: np.random.Generator, shape: Shape) -> ScenarioProgram:
    """A planted program with a planted direction that no row and no curvature stops."""
    planted = planted_program(rng, shape, linear=bool(rng.integers(2)))
    program = planted.program
    B, M = program.weights.shape
    z, u = torch.randn(B, shape.n).double(), torch.randn(B, M, shape.k).double()
    z /= z.norm(dim=-1, keepdim=True)
    blocks = {name: block for name, block in program.blocks().items() if block.numel()}
    along = lambda A, x: (A @ x.unsqueeze(-1)).squeeze(-1)  # noqa: E731

    def project(A: torch.Tensor, x: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
        """A with `amount` taken from every row's product with the unit vector x."""
        return A - amount.unsqueeze(-1) * x.unsqueeze(-2)

    z_j = z.unsqueeze(1)
    if "G" in blocks:
        blocks["G"] = project(program.G, z, along(program.G, z).clamp_min(0))
    if "E" in blocks:
        blocks["E"] = project(program.E, z, along(program.E, z))
    if "P" in blocks:
        half = torch.eye(shape.n).double() - z.unsqueeze(-1) * z.unsqueeze(-2)
        blocks["P"] = half @ program.P @ half
    if shape.k:
        u = u / u.norm(dim=-1, keepdim=True)
        half = torch.eye(shape.k).double() - u.unsqueeze(-1) * u.unsqueeze(-2)
        blocks["D"] = half @ program.D @ half
    if "W" in blocks:
        T = torch.nn.functional.pad(program.T, (0, 0, 0, shape.r - shape.t))
        blocks["W"] = project(program.W, u, (along(T, z_j) + along(program.W, u)).clamp_min(0))
    elif "T" in blocks:
        blocks["T"] = project(program.T, z_j, along(program.T, z_j).clamp_min(0))
    if "V" in blocks:
        blocks["V"] = project(program.V, u, along(program.F, z_j) + along(program.V, u))
    slope = (program.q * z).sum(-1) + (program.weights * (program.d * u).sum(-1)).sum(-1)
    fall = 10 ** rng.uniform(-1, 1)
    blocks["q"] = program.q - (slope + fall).unsqueeze(-1) * z
    # The planted point still shows that the program is feasible.
    blocks |= _right_sides(ScenarioProgram(**blocks), planted, program)
    return ScenarioProgram(**blocks)


def _right_sides(
    changed: ScenarioProgram, planted: Planted, before: ScenarioProgram
) -> dict[str, torch.Tensor]:
    along = lambda A, x: (A @ x.unsqueeze(-1)).squeeze(-1)  # noqa: E731
    z, u = planted.z, planted.u
    right = {}
    if changed.h.numel():
        right["h"] = along(changed.G, z) + (before.h - along(before.G, z))
    if changed.e.numel():
        right["e"] = along(changed.E, z)
    if changed.r.numel():
        n_r = changed.r.shape[-1]
        T = torch.nn.functional.pad(changed.T, (0, 0, 0, n_r - changed.T.shape[-2]))
        before_rows = torch.nn.functional.pad(before.T, (0, 0, 0, n_r - before.T.shape[-2]))
        slack = before.r - along(before_rows, z.unsqueeze(1)) - along(before.W, u)
        right["r"] = along(T, z.unsqueeze(1)) + along(changed.W, u) + slack
    if changed.s.numel():
        right["s"] = along(changed.F, z.unsqueeze(1)) + along(changed.V, u)
    return right


def _gram(A: np.ndarray) -> np.ndarray:
    return A @ np.swapaxes(A, -1, -2) / max(A.shape[-1], 1)


def _complementary(
    rng: np.random.Generator, size: tuple[int, ...], degenerate: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Slacks and multipliers of which one is zero, or both where degenerate."""
    active = rng.random(size) < 0.4
    slack = np.where(active, 0.0, rng.uniform(0.3, 1.5, size))
    dual = np.where(active, rng.uniform(0.3, 1.5, size), 0.0)
    if degenerate:
        neither = rng.random(size) < 0.3
        slack, dual = np.where(neither, 0.0, slack), np.where(neither, 0.0, dual)
    return slack, dual
