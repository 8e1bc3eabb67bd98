"""Distances to cones and to their duals, and how the projection onto a cone changes.

Arrays have one row per context and one column per row of a `ConicForm`. The exponential cone and
its dual have no formula for the distance; what stands here is the distance to one point in them,
which is no smaller.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp

from forewise.solvers.conic.form import ConicForm

Array = np.ndarray


def cone_distance(form: ConicForm, s: Array) -> Array:
    """How far slacks are from their cones, at most; a cone's rows all have its distance."""
    zero, positive, second_order, exponential = _parts(form, s)
    return np.concatenate(
        [
            np.abs(zero),
            np.maximum(-positive, 0),
            _second_order_distance(form, second_order),
            _spread(_exponential_distance(exponential)),
        ],
        axis=1,
    )


def dual_cone_distance(form: ConicForm, y: Array) -> Array:
    """How far multipliers are from the dual cones, at most; those of equations are free."""
    zero, positive, second_order, exponential = _parts(form, y)
    return np.concatenate(
        [
            np.zeros_like(zero),
            np.maximum(-positive, 0),
            _second_order_distance(form, second_order),
            _spread(_dual_exponential_distance(exponential)),
        ],
        axis=1,
    )


def projection_derivative(form: ConicForm, s: Array, y: Array) -> sp.csr_array:
    """Derivative of the projection onto the cones at s − y, for one context.

    Where s is inside of a cone it is the identity, where y is inside of the dual cone it is 0.
    Else s is at a smooth piece {F = 0} of the boundary with y = −μ∇F(s), and the derivative is
    that of the nearest point: v ↦ s with s + μ∇F(s) = v, F(s) = 0.
    """
    (zero, positive, second_order, exponential), duals = (
        [part[0] for part in _parts(form, values[None])] for values in (s, y)
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


def _parts(form: ConicForm, values: Array) -> list[Array]:
    """Columns of equations, inequalities, second-order and exponential cones."""
    counts = (form.n_equalities, form.n_inequalities, sum(form.second_order))
    return np.split(values, np.cumsum(counts), axis=1)


def _spread(distance: Array) -> Array:
    return np.repeat(distance, 3, axis=1)


def _second_order_distance(form: ConicForm, values: Array) -> Array:
    if not form.second_order:
        return np.zeros_like(values)
    sizes = np.array(form.second_order)
    starts = np.cumsum(sizes) - sizes
    top, rest = values[:, starts], values.copy()
    rest[:, starts] = 0
    length = np.sqrt(np.add.reduceat(rest**2, starts, axis=1))
    beyond = np.hypot(top, length)  # where the nearest point is the tip
    distance = np.where(length <= -top, beyond, np.maximum(length - top, 0) / np.sqrt(2))
    return np.repeat(distance, sizes, axis=1)


def _exponential_distance(values: Array) -> Array:
    """To the closest of three points: c raised, a lowered, or b = 0."""
    a, b, c = _triples(values)
    flat = np.sqrt(np.maximum(a, 0) ** 2 + b**2 + np.minimum(c, 0) ** 2)
    with np.errstate(all="ignore"):
        raised = np.where(b > 0, np.maximum(b * np.exp(a / b) - c, 0), np.inf)
        lowered = np.where((b > 0) & (c > 0), np.maximum(a - b * np.log(c / b), 0), np.inf)
    return np.fmin(np.fmin(raised, lowered), flat)


def _dual_exponential_distance(values: Array) -> Array:
    """To {(u, v, w) : −u exp(v/u − 1) ≤ w, u < 0} and its closure: w raised, v raised, or u = 0."""
    u, v, w = _triples(values)
    flat = np.sqrt(u**2 + np.minimum(v, 0) ** 2 + np.minimum(w, 0) ** 2)
    with np.errstate(all="ignore"):
        raised = np.where(u < 0, np.maximum(-u * np.exp(v / u - 1) - w, 0), np.inf)
        other = np.where((u < 0) & (w > 0), np.maximum(u * (1 + np.log(-w / u)) - v, 0), np.inf)
    return np.fmin(np.fmin(raised, other), flat)


def _triples(values: Array) -> tuple[Array, Array, Array]:
    return values[:, 0::3], values[:, 1::3], values[:, 2::3]


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
    if _exponential_distance(v)[0, 0] == 0:
        return np.eye(3)
    if _dual_exponential_distance(-v)[0, 0] == 0:
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
