"""Implicit differentiation of a program's solution: the one autograd function.

At a point of the central path the optimality conditions hold as equations,

    H x + q + A'λ + E'ν = 0,     (b − A x) ∘ λ = const,     E x = e,

so that the derivative of (x, λ, ν) with respect to the data solves the Newton system of the
last step. With (v, l, n) the solution of that symmetric system for the incoming gradients,

    ∂P = −½ (v x' + x v'),   ∂q = −v,   ∂A = −(l x' + λ v'),   ∂b = l,
    ∂E = −(ν v' + n x'),     ∂e = n.

A linear program's solution is piecewise constant in its costs: its gradient is that of a point
of the central path, at a distance that the solver sets (`smoothing`). Where a context has many
solutions the system at the end of the path is singular, and refining the adjoint does not
converge; a little earlier on the path it does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from forewise.problems.programs import BLOCKS, ScenarioProgram, apply
from forewise.problems.sparse import SparseBlock
from forewise.solvers.interior_point.core import (
    PathEnds,
    Points,
    as_arrays,
    follow_paths,
    solve_adjoints,
)
from forewise.solvers.solution import Duals, only

# The relative size of an adjoint's last correction above which it has not converged: it is below
# 1e-4 where there is one solution, and a quarter and more where there are many.
_UNSETTLED = 1e-2
# Relative gaps of the points at which such a context is differentiated, until one converges.
_EARLIER = (1e-8, 1e-6, 1e-4)
_NAMES = ("weights", *(name for name in BLOCKS if name != "c"))  # c moves no decision


class TensorPoints(NamedTuple):
    """`Points` as tensors: variables, inequality rows and equality rows of all contexts."""

    z: torch.Tensor
    u: torch.Tensor
    first: torch.Tensor
    scenario: torch.Tensor
    nu: torch.Tensor
    nus: torch.Tensor

    @classmethod
    def from_arrays(cls, points: Points, device: torch.device) -> TensorPoints:
        """The same numbers, as tensors of a device."""
        return cls(*(torch.from_numpy(part).to(device) for part in points))

    @property
    def duals(self) -> Duals:
        """The multipliers."""
        return Duals(self.first, self.nu, self.scenario, self.nus)


class Path(NamedTuple):
    """What following the paths of all contexts leaves."""

    solutions: PathEnds
    gradient_points: PathEnds  # where each context is differentiated
    ended: np.ndarray  # how, (n_contexts,)
    iterations: np.ndarray  # (n_contexts,)


def optimal_value(program: ScenarioProgram, x: TensorPoints, optimal: torch.Tensor) -> torch.Tensor:
    """The objective at a solution, with the derivatives of the optimal value, ``(B,)``.

    By the envelope theorem these are the derivatives of the Lagrangian with the solution and its
    multipliers held fixed: exact wherever the value has a derivative, and between its one-sided
    slopes elsewhere. A scenario of weight zero has no recourse, and no derivative in its weight.
    NaN, without a gradient, where a context is not optimal.
    """

    def held(values: torch.Tensor) -> torch.Tensor:
        mask = optimal.reshape(-1, *(1,) * (values.ndim - 1))
        return torch.where(mask, values.detach(), 0.0)

    z, u = held(x.z), held(x.u)
    cost = program.objective(z, u)
    lagrangian = cost
    t = program.block("T").shape[-2]
    terms: tuple[tuple[str, torch.Tensor, Callable[[], torch.Tensor]], ...] = (
        ("Gh", x.first, lambda: apply(program.block("G"), z) - program.h),
        ("Ee", x.nu, lambda: apply(program.block("E"), z) - program.e),
        ("T", x.scenario[..., :t], lambda: _in_scenarios(program.block("T"), z)),
        ("Wr", x.scenario, lambda: apply(program.block("W"), u) - program.r),
        ("F", x.nus, lambda: _in_scenarios(program.block("F"), z)),
        ("Vs", x.nus, lambda: apply(program.block("V"), u) - program.s),
    )
    for names, multipliers, excess in terms:
        if torch.is_grad_enabled() and any(program.block(name).requires_grad for name in names):
            priced = held(multipliers) * excess()
            lagrangian = lagrangian + priced.flatten(1).sum(1)
    return only(optimal, lagrangian + (cost - lagrangian).detach())


def _in_scenarios(block: torch.Tensor | SparseBlock, z: torch.Tensor) -> torch.Tensor:
    """Block times z in every scenario, ``(B, M | 1, rows)``."""
    return apply(block, z.unsqueeze(1).expand(-1, block.shape[1], -1))


def attach_gradients(
    program: ScenarioProgram, path: Path, settings: tuple[float, int]
) -> TensorPoints:
    """The solutions of a path as tensors that carry gradients to the program's blocks."""
    stored = (program.block(name) for name in _NAMES)
    blocks = [block.entries if isinstance(block, SparseBlock) else block for block in stored]
    if not (torch.is_grad_enabled() and any(block.requires_grad for block in blocks)):
        return TensorPoints.from_arrays(path.solutions.points, blocks[0].device)
    return TensorPoints(*_Implicit.apply(program, path, settings, *blocks))  # type: ignore[no-untyped-call]


class _Implicit(torch.autograd.Function):
    """(P, q, G, …) ↦ (z, u, λ, λ_j, ν, ν_j), whose values are known."""

    @staticmethod
    def forward(
        ctx: Any,
        program: ScenarioProgram,
        path: Path,
        settings: tuple[float, int],
        *blocks: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        ctx.program, ctx.ends, ctx.settings = program, path.gradient_points, settings
        ctx.set_materialize_grads(False)
        return tuple(TensorPoints.from_arrays(path.solutions.points, blocks[0].device))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        if all(g is None for g in gradients):
            return (None,) * (3 + len(_NAMES))
        program: ScenarioProgram = ctx.program
        ends: PathEnds = ctx.ends
        right = Points(
            *(
                np.zeros_like(part) if g is None else np.ascontiguousarray(g.detach().cpu().numpy())
                for g, part in zip(gradients, ends.points, strict=True)
            )
        )
        # A context that failed gets no gradient from above, and must not make NaN of that.
        given = [part for g, part in zip(gradients, right, strict=True) if g is not None]
        live = np.any([part.reshape(len(part), -1).any(1) for part in given], axis=0)
        ends, adjoint = _adjoints(program, ends, right, live, ctx.settings)
        device = program.weights.device
        v = TensorPoints.from_arrays(adjoint, device)
        x = TensorPoints.from_arrays(Points(*(_masked(live, part) for part in ends.points)), device)
        slack = torch.from_numpy(_masked(live, ends.slack.scenario)).to(device)
        wanted = dict(zip(_NAMES, ctx.needs_input_grad[3:], strict=True))
        rules = _rules(program, x, v, slack)
        return None, None, None, *(rules[name]() if wanted[name] else None for name in _NAMES)


def _adjoints(
    program: ScenarioProgram,
    ends: PathEnds,
    right: Points,
    live: np.ndarray,
    settings: tuple[float, int],
) -> tuple[PathEnds, Points]:
    """Where the contexts in a mask are differentiated, and their adjoints there."""
    adjoint, corrections = solve_adjoints(as_arrays(program), ends, right, live)
    for gap in _EARLIER:
        lost = np.flatnonzero(corrections > _UNSETTLED)
        if not len(lost):
            break
        part = as_arrays(program.take(torch.from_numpy(lost).to(program.weights.device)))
        asked = Points(*(values[lost] for values in right))
        _, centres, _, _ = follow_paths(part, *settings, np.full(len(lost), gap))
        found, corrections[lost] = solve_adjoints(part, centres, asked, live[lost])
        ends = copy.deepcopy(ends)  # the forward pass's are the solution itself
        for values, others in zip(
            (*ends.points, *ends.slack, ends.holds, *adjoint),
            (*centres.points, *centres.slack, centres.holds, *found),
            strict=True,
        ):
            values[lost] = others
    return ends, adjoint


def _masked(contexts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values of the contexts in a mask, and 0 elsewhere."""
    if contexts.all():
        return values
    return np.where(contexts.reshape(-1, *(1,) * (values.ndim - 1)), values, 0.0)


def _rules(
    program: ScenarioProgram, x: TensorPoints, v: TensorPoints, slack: torch.Tensor
) -> dict[str, Callable[[], torch.Tensor]]:
    """How to get the gradient of each block, evaluated only where it is wanted."""
    weights = program.weights.unsqueeze(-1)
    t = program.block("T").shape[-2]
    coupled, coupled_v = x.scenario[..., :t], v.scenario[..., :t]

    def weight_gradient() -> torch.Tensor:
        # A scenario's weight is that of its cost, and that of its rows in the barrier.
        cost = (v.u * (apply(program.block("D"), x.u) + program.d)).sum(-1)
        barrier = (v.scenario * slack).sum(-1)
        return -cost - torch.where(program.weights > 0, barrier / program.weights, 0.0)

    def first(name: str, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """rows columns' of each context, summed over what shares the block."""
        block = program.block(name)
        if isinstance(block, SparseBlock):
            products = rows[:, block.rows] * columns[:, block.columns]
            return products.sum_to_size(block.entries.shape)
        if block.shape[0] == 1:
            return (rows.mT @ columns).unsqueeze(0)
        return rows.unsqueeze(-1) * columns.unsqueeze(-2)

    def scenario(name: str, *pairs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """−rows_j columns_j' of each scenario, over two pairs and what shares the block."""
        block = program.block(name)
        shared = tuple(size == 1 for size in block.shape[:2])
        (rows, columns), (more_rows, more_columns) = (
            (r, c if c.ndim == 3 else c.unsqueeze(1).expand(-1, r.shape[1], -1)) for r, c in pairs
        )
        if isinstance(block, SparseBlock):
            i, c = block.rows, block.columns
            products = rows[..., i] * columns[..., c] + more_rows[..., i] * more_columns[..., c]
            return -products.sum_to_size(block.entries.shape)
        if shared == (True, True):
            total = rows.flatten(0, 1).mT @ columns.flatten(0, 1)
            total += more_rows.flatten(0, 1).mT @ more_columns.flatten(0, 1)
            return -total[None, None]
        if shared == (False, True):
            return -(rows.mT @ columns + more_rows.mT @ more_columns).unsqueeze(1)
        # The largest tensor of the backward pass: memory is written twice, and not four times.
        total = -rows.unsqueeze(-1) * columns.unsqueeze(-2)
        total.addcmul_(more_rows.unsqueeze(-1), more_columns.unsqueeze(-2), value=-1)
        return total.sum(0, keepdim=True) if shared[0] else total

    def reduced(name: str, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.sum_to_size(getattr(program, name).shape)

    wv = weights * v.u
    return {
        "weights": weight_gradient,
        "q": lambda: reduced("q", -v.z),
        "P": lambda: -0.5 * (first("P", v.z, x.z) + first("P", x.z, v.z)),
        "G": lambda: -(first("G", v.first, x.z) + first("G", x.first, v.z)),
        "h": lambda: reduced("h", v.first),
        "E": lambda: -(first("E", v.nu, x.z) + first("E", x.nu, v.z)),
        "e": lambda: reduced("e", v.nu),
        "d": lambda: reduced("d", -wv),
        "D": lambda: 0.5 * scenario("D", (wv, x.u), (x.u, wv)),
        "T": lambda: scenario("T", (coupled_v, x.z), (coupled, v.z)),
        "W": lambda: scenario("W", (v.scenario, x.u), (x.scenario, v.u)),
        "r": lambda: reduced("r", v.scenario),
        "F": lambda: scenario("F", (v.nus, x.z), (x.nus, v.z)),
        "V": lambda: scenario("V", (v.nus, x.u), (x.nus, v.u)),
        "s": lambda: reduced("s", v.nus),
    }
