"""The optimality conditions of a conic program, recomputed from its raw data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from forewise.solvers.conic.form import ConicForm
from forewise.solvers.conic.geometry import cone_distance, dual_cone_distance
from forewise.solvers.conic.sparse_batch import one_where_zero
from forewise.solvers.interior_point.verification import Residuals

#: A context of a conic program is optimal only if all its relative residuals are at most this.
ACCEPTED = 1e-7

#: A proof of infeasibility or unboundedness holds if it is as exact as this.
PROVEN = 1e-6


def conic_residuals(form: ConicForm, x: torch.Tensor, y: torch.Tensor) -> Residuals:
    """Recompute the optimality conditions of points and multipliers of a batch.

    As for scenario programs: slacks may be out of their cones relative to the rows' coefficients
    and the size of the solution, multipliers out of the dual cones and costs out of balance
    relative to the size of the costs.
    """
    product, curved = form.A.times(x), form.P.times(x)
    pull = form.A.transposed_times(y)
    norm = one_where_zero(form.A.row_maximum())
    size = one_where_zero(torch.maximum(_largest(x), _largest(form.b / norm).expand(len(x))))
    violation = _distance(cone_distance, form, form.b - product)
    slope = (curved + form.q + pull) / form.column_weight
    cost = torch.maximum((form.q / form.column_weight).abs(), (curved / form.column_weight).abs())
    cost_size = one_where_zero(_largest(cost))
    outside = _distance(dual_cone_distance, form, y) * norm / form.row_weight
    bent, linear = (x * curved).sum(1), (form.q * x).sum(1)
    scale = torch.maximum((0.5 * bent + linear).abs(), 0.1 * cost_size * size)
    return Residuals(
        primal=_largest(violation / norm) / size,
        dual=torch.maximum(_largest(slope), _largest(outside)) / cost_size,
        gap=(bent + linear + (form.b * y).sum(1)).abs() / scale,
    )


def infeasibility_residual(form: ConicForm, y: torch.Tensor) -> torch.Tensor:
    """How far y is from proving that no point meets the rows; inf where it proves nothing.

    A proof has A'y = 0, y in the dual cones and b'y < 0.
    """
    gain = -(form.b * y).sum(1)
    pulls = form.A.values * y[:, form.A.rows]
    outside = _distance(dual_cone_distance, form, y) * form.A.row_maximum()
    defect = torch.maximum(_largest(form.A.transposed_times(y)), _largest(outside))
    terms = one_where_zero(_largest(pulls))
    return torch.where(gain > 0, defect / terms, torch.inf)


def unboundedness_residual(form: ConicForm, x: torch.Tensor) -> torch.Tensor:
    """How far x is from proving that the cost falls without end; inf where it proves nothing.

    A proof has −A x in the cones, P x = 0 and q'x < 0.
    """
    gain = -(form.q * x).sum(1)
    norm = one_where_zero(form.A.row_maximum())
    violation = _largest(_distance(cone_distance, form, -form.A.times(x)) / norm)
    steepness = one_where_zero(_largest(form.q))
    defect = torch.maximum(violation, _largest(form.P.times(x)) / steepness)
    return torch.where(gain > 0, defect / one_where_zero(_largest(x)), torch.inf)


def _distance(
    measure: Callable[[ConicForm, np.ndarray], np.ndarray], form: ConicForm, values: torch.Tensor
) -> torch.Tensor:
    return torch.from_numpy(measure(form, values.numpy()))


def _largest(values: torch.Tensor) -> torch.Tensor:
    return values.abs().amax(1) if values.shape[1] else values.new_zeros(len(values))
