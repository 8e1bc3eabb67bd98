"""The optimality conditions of a conic program, recomputed from its raw data.

Arrays have one row per context and one column per row of a `ConicForm`. The exponential cone and
its dual have no formula for the distance; what stands here is the distance to one point in them,
which is no smaller.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from forewise.solvers.conic.form import ConicForm
from forewise.solvers.conic.sparse_batch import one_where_zero
from forewise.solvers.interior_point.verification import Residuals

Array = np.ndarray

#: A context of a conic program is optimal only if all its relative residuals are at most this.
ACCEPTED = 1e-7

# In the first stage's own size, maybe far below the recourse's, engines are less exact:
# violations are accepted up to 1e-6, as by metrics, and a row's part of the gap up to 1e-4.
_OWN_VIOLATION, _OWN_GAP = 1e-1, 1e-3

#: A proof of infeasibility or unboundedness holds if it is as exact as this.
PROVEN = 1e-6


def conic_residuals(form: ConicForm, x: torch.Tensor, y: torch.Tensor) -> Residuals:
    """Recompute the optimality conditions of points and multipliers of a batch.

    As for scenario programs: slacks may be out of their cones relative to the rows' coefficients
    and the size of the solution, multipliers out of the dual cones and costs out of balance
    relative to the size of the costs. Linear rows of the first stage count in its own size, too.
    """
    product, curved = form.A.times(x), form.P.times(x)
    pull = form.A.transposed_times(y)
    norm = one_where_zero(form.A.row_maximum())
    size = one_where_zero(torch.maximum(_largest(x), _largest(form.b / norm).expand(len(x))))
    violation = cone_distance(form, form.b - product)
    slope = (curved + form.q + pull) / form.column_weight
    cost = torch.maximum((form.q / form.column_weight).abs(), (curved / form.column_weight).abs())
    cost_size = one_where_zero(_largest(cost))
    outside = dual_cone_distance(form, y) * norm / form.row_weight
    bent, linear = (x * curved).sum(1), (form.q * x).sum(1)
    scale = torch.maximum((0.5 * bent + linear).abs(), 0.1 * cost_size * size)
    gap = (bent + linear + (form.b * y).sum(1)).abs() / scale
    rows = form.first_stage_rows
    farthest = _largest((form.b / norm)[:, rows])
    own = torch.maximum(farthest, _largest(x[:, : form.n_decisions]))
    own = torch.where(farthest > 0, own, torch.inf)  # all through the origin do not say
    pressing = _largest((y * (form.b - product))[:, rows])
    return Residuals(
        primal=torch.maximum(
            _largest(violation / norm) / size,
            _OWN_VIOLATION * _largest((violation / norm)[:, rows]) / own,
        ),
        dual=torch.maximum(_largest(slope), _largest(outside)) / cost_size,
        gap=torch.maximum(gap, _OWN_GAP * pressing / (own * cost_size)),
    )


def infeasibility_residual(form: ConicForm, y: torch.Tensor) -> torch.Tensor:
    """How far y is from proving that no point meets the rows; inf where it proves nothing.

    A proof has A'y = 0, y in the dual cones and b'y < 0.
    """
    gain = -(form.b * y).sum(1)
    pulls = form.A.values * y[:, form.A.rows]
    outside = dual_cone_distance(form, y) * form.A.row_maximum()
    defect = torch.maximum(_largest(form.A.transposed_times(y)), _largest(outside))
    terms = one_where_zero(_largest(pulls))
    return torch.where(gain > 0, defect / terms, torch.inf)


def unboundedness_residual(form: ConicForm, x: torch.Tensor) -> torch.Tensor:
    """How far x is from proving that the cost falls without end; inf where it proves nothing.

    A proof has −A x in the cones, P x = 0 and q'x < 0.
    """
    gain = -(form.q * x).sum(1)
    norm = one_where_zero(form.A.row_maximum())
    violation = _largest(cone_distance(form, -form.A.times(x)) / norm)
    steepness = one_where_zero(_largest(form.q))
    defect = torch.maximum(violation, _largest(form.P.times(x)) / steepness)
    return torch.where(gain > 0, defect / one_where_zero(_largest(x)), torch.inf)


def cone_distance(form: ConicForm, s: torch.Tensor) -> torch.Tensor:
    """How far slacks are from their cones, at most; a cone's rows all have its distance."""
    return _distances(form, s, np.abs, exponential_distance)


def dual_cone_distance(form: ConicForm, y: torch.Tensor) -> torch.Tensor:
    """How far multipliers are from the dual cones, at most; those of equations are free."""
    return _distances(form, y, np.zeros_like, dual_exponential_distance)


def _distances(
    form: ConicForm,
    values: torch.Tensor,
    of_zero: Callable[[Array], Array],
    of_exponential: Callable[[Array], Array],
) -> torch.Tensor:
    zero, positive, second_order, exponential = split_by_cone(form, values.numpy())
    distances = [
        of_zero(zero),
        np.maximum(-positive, 0),
        _second_order_distance(form, second_order),
        np.repeat(of_exponential(exponential), 3, axis=1),
    ]
    return torch.from_numpy(np.concatenate(distances, axis=1))


def split_by_cone(form: ConicForm, values: Array) -> list[Array]:
    """Columns of equations, inequalities, second-order and exponential cones."""
    counts = (form.n_equalities, form.n_inequalities, sum(form.second_order))
    return np.split(values, np.cumsum(counts), axis=1)


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


def exponential_distance(values: Array) -> Array:
    """To the closest of three points: c raised, a lowered, or b = 0."""
    a, b, c = _triples(values)
    flat = np.sqrt(np.maximum(a, 0) ** 2 + b**2 + np.minimum(c, 0) ** 2)
    with np.errstate(all="ignore"):
        raised = np.where(b > 0, np.maximum(b * np.exp(a / b) - c, 0), np.inf)
        lowered = np.where((b > 0) & (c > 0), np.maximum(a - b * np.log(c / b), 0), np.inf)
    return np.fmin(np.fmin(raised, lowered), flat)


def dual_exponential_distance(values: Array) -> Array:
    """To {(u, v, w) : −u exp(v/u − 1) ≤ w, u < 0} and its closure: w raised, v raised, or u = 0."""
    u, v, w = _triples(values)
    flat = np.sqrt(u**2 + np.minimum(v, 0) ** 2 + np.minimum(w, 0) ** 2)
    with np.errstate(all="ignore"):
        raised = np.where(u < 0, np.maximum(-u * np.exp(v / u - 1) - w, 0), np.inf)
        other = np.where((u < 0) & (w > 0), np.maximum(u * (1 + np.log(-w / u)) - v, 0), np.inf)
    return np.fmin(np.fmin(raised, other), flat)


def _triples(values: Array) -> tuple[Array, Array, Array]:
    return values[:, 0::3], values[:, 1::3], values[:, 2::3]


def _largest(values: torch.Tensor) -> torch.Tensor:
    return values.abs().amax(1) if values.shape[1] else values.new_zeros(len(values))
