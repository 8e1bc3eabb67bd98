"""Implicit differentiation of a conic program's solution.

With v = s − y and Π the projection onto the cones, s = Π(v) and y = Π(v) − v, so that the
optimality conditions are equations,

    P x + q + A'(Π(v) − v) = 0,        A x + Π(v) − b = 0.

With D the derivative of Π at v and (g_x, g_y) the incoming gradients, the adjoint (a, c) solves

    P a + A'c = −g_x,        (D − 1) A a + D c = −(D − 1) g_y

and gives  ∂q = a,  ∂b = −c,  ∂A = y a' + c x',  ∂P = ½ (a x' + x a').

An engine that has derivatives gives (a, c) itself; here is the one for points of any other.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
import torch

from forewise.solvers.conic.engines import Answers, matrix_of
from forewise.solvers.conic.form import ConicForm
from forewise.solvers.conic.optimality import (
    dual_exponential_distance,
    exponential_distance,
    split_by_cone,
)

Array = np.ndarray

_RIDGE = 1e-10  # what a linear system gets so that its factor exists
_SINGULAR = 1e-6  # relative error from which on a linear system counts as singular
_TOLERATED = 1e-4  # relative error of an engine's own adjoint


def attach_gradients(
    form: ConicForm, plain: ConicForm, answers: Answers
) -> tuple[torch.Tensor, torch.Tensor]:
    """x and y of an engine's answers, with gradients in the form's data; `plain` has none."""
    data = (form.P.values, form.q, form.A.values, form.b)
    x, y = _Implicit.apply(plain, answers, *data)  # type: ignore[no-untyped-call]
    return x, y


class _Implicit(torch.autograd.Function):
    """(P, q, A, b) ↦ (x, y), whose values are known."""

    @staticmethod
    def forward(
        ctx: Any, form: ConicForm, answers: Answers, *data: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.form, ctx.answers = form, answers
        return answers.x.clone(), answers.y.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gx: torch.Tensor, gy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        form: ConicForm = ctx.form
        answers: Answers = ctx.answers
        # A context that failed gets no gradient from above, and must not make NaN of that.
        live = gx.any(1) | gy.any(1)
        x, y = (torch.where(live[:, None], part, 0.0) for part in (answers.x, answers.y))
        gq, gb = torch.zeros_like(x), torch.zeros_like(y)
        left = live
        if answers.adjoint is not None:
            gq, gb = answers.adjoint(gx, gy)
            # What an engine says must at least meet the first equation above.
            error = (form.P.times(gq) - form.A.transposed_times(gb) + gx).abs().amax(1)
            good = (error <= _TOLERATED * gx.abs().amax(1)) & gb.isfinite().all(1)
            gq, gb = (torch.where((live & good)[:, None], part, 0.0) for part in (gq, gb))
            left = live & ~good
        for i in left.nonzero().squeeze(1).tolist():
            gq[i], gb[i] = adjoint(form, i, x[i], y[i], gx[i], gy[i])
        P, A = form.P, form.A
        gP = 0.5 * (gq[:, P.rows] * x[:, P.columns] + gq[:, P.columns] * x[:, P.rows])
        gA = y[:, A.rows] * gq[:, A.columns] - gb[:, A.rows] * x[:, A.columns]
        shared = (gP.sum_to_size(P.values.shape), gq, gA.sum_to_size(A.values.shape), gb)
        return None, None, *shared


def adjoint(
    form: ConicForm,
    context: int,
    x: torch.Tensor,
    y: torch.Tensor,
    gx: torch.Tensor,
    gy: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of q and b for one context's point, from those of x and y.

    Where the point does not change smoothly (a cost without a unique optimum, say) it is the
    shortest of the least-squares solutions.
    """
    P, A = matrix_of(form.P, context), matrix_of(form.A, context)
    slack = form.b[context].detach().numpy() - A @ x.numpy()
    D = projection_derivative(form, slack, y.numpy())
    less = D - sp.eye_array(D.shape[0], format="csr")
    system = sp.csc_array(sp.block_array([[P, A.T], [less @ A, D]]))
    right = -np.concatenate([gx.numpy(), less @ gy.numpy()])
    # As if x and y had a price ½ |x|², ½ |y|²: then there is always one solution.
    ridge = sp.block_diag([sp.eye_array(len(x)), -less], format="csc")
    found = _solved(system, right, ridge)
    a, c = np.split(found, [len(x)])
    return torch.from_numpy(a), torch.from_numpy(-c)


def _solved(system: sp.csc_array, right: Array, ridge: sp.csc_array) -> Array:
    factor = spl.splu(sp.csc_matrix(system + _RIDGE * ridge))
    found = factor.solve(right)
    for _ in range(2):
        found += factor.solve(right - system @ found)
    error = np.abs(system @ found - right).max()
    if not error <= _SINGULAR * np.abs(right).max():
        found = spl.lsmr(system, right, atol=1e-12, btol=1e-12, maxiter=10 * len(right))[0]
    return found


def projection_derivative(form: ConicForm, s: Array, y: Array) -> sp.csr_array:
    """Derivative of the projection onto the cones at s − y, for one context.

    Where s is inside of a cone it is the identity, where y is inside of the dual cone it is 0.
    Else s is at a smooth piece {F = 0} of the boundary with y = −μ∇F(s), and the derivative is
    that of the nearest point: v ↦ s with s + μ∇F(s) = v, F(s) = 0.
    """
    (zero, positive, second_order, exponential), duals = (
        [part[0] for part in split_by_cone(form, values[None])] for values in (s, y)
    )
    blocks = [
        sp.csr_array((len(zero), len(zero))),
        sp.diags_array((positive > duals[1]).astype(float)),
    ]
    starts = np.cumsum((0, *form.second_order))
    for start, end in itertools.pairwise(starts):
        blocks.append(_second_order_derivative(second_order[start:end], duals[2][start:end]))
    slack, dual = exponential.reshape(-1, 3), duals[3].reshape(-1, 3)
    blocks += [_exponential_derivative(a, b) for a, b in zip(slack, dual, strict=True)]
    return sp.csr_array(sp.block_diag(blocks, format="csr"))


def _second_order_derivative(s: Array, y: Array) -> Array:
    v = s - y
    length = np.linalg.norm(v[1:])
    if length <= abs(v[0]):
        return np.eye(len(s)) * (v[0] > 0)
    # Both parts of v have a formula: s = ½ (1 + t/|x|) (|x|, x).
    direction, ratio = v[1:] / length, v[0] / length
    block = np.empty((len(s), len(s)))
    block[0, 0] = 0.5
    block[0, 1:] = block[1:, 0] = 0.5 * direction
    block[1:, 1:] = 0.5 * (1 + ratio) * np.eye(len(s) - 1)
    block[1:, 1:] -= 0.5 * ratio * np.outer(direction, direction)
    return block


def _exponential_derivative(s: Array, y: Array) -> Array:
    v = (s - y)[None]
    if exponential_distance(v)[0, 0] == 0:
        return np.eye(3)
    if dual_exponential_distance(-v)[0, 0] == 0:
        return np.zeros((3, 3))
    a, b, _ = s
    if b <= 0:
        # The flat piece of the boundary: b = 0, a ≤ 0, c ≥ 0.
        return np.diag([float(v[0, 0] < 0), 0.0, float(v[0, 2] > 0)])
    growth = np.exp(min(a / b, 700.0))
    normal = np.array([growth, growth * (1 - a / b), -1.0])
    bend = np.array([1.0, -a / b, 0.0])
    system = np.zeros((4, 4))
    system[:3, :3] = np.eye(3) + y[2] * growth / b * np.outer(bend, bend)
    system[:3, 3] = system[3, :3] = normal / np.linalg.norm(normal)
    return np.linalg.inv(system)[:3, :3]
