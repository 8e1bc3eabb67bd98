"""How large a constraint is at a decision: what its violation is divided by.

A constraint's violation has no unit: what is too much is divided by the size of the row,

    excess_r / s_r,    s_r = max(|b_r|, max_k |a_rk z_k|)                   where b_r ≠ 0,
                       s_r = max_k |a_rk| max(|z_k|, min(max_i |z_i|, c_k))  where b_r = 0,

for rows a_r'z ≤ b_r and a_r'z = b_r, with c_k = min |b_r| / |a_rk| over the rows with a bound other
than 0: what they leave to decision k at most. A row without a bound, z_k ≥ 0 say, is therefore
measured by the other decisions of its context: −1e-12 beside 1 is 1e-12. Scaling decisions and
bounds together, or a row with its bound, changes nothing. A bound that is rounding beside its row
(5.6e-17 in a balance of stocks) is 0.
Cones have the largest size of their rows (`cone_formulas`). May import: arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from forewise.validation.arguments import WORKING_DTYPE

# A bound is rounding where it is a smaller share of what the row's decisions come to.
_ROUNDING = 1e-12


def limits(rows: list[tuple[torch.Tensor, torch.Tensor]], z: torch.Tensor) -> torch.Tensor:
    """c_k of the module's docstring, ``(n_contexts | 1, n_decisions)``; infinite without bounds.

    `rows` are matrices (n_contexts | 1, n_rows, at least n_decisions) and their bounds.
    """
    n = z.shape[-1]
    least = torch.full((1, n), torch.inf, dtype=WORKING_DTYPE)
    for matrix, bound in rows:
        if matrix.shape[1] == 0:
            continue
        told = bound.abs() > _ROUNDING * matrix[:, :, :n].abs().amax(-1) * _reach(z)
        columns = []
        for size in matrix[:, :, :n].abs().unbind(-1):
            left = torch.where(told & (size > 0), bound.abs() / size, torch.inf)
            columns.append(left.amin(1))
        least = torch.minimum(least, torch.stack(columns, 1))
    return least


@dataclass(eq=False)
class Point:
    """Values of variables ``(n_contexts, n)``, and how large each is taken to be.

    Attributes
    ----------
    values : tensor
        0 for variables that are not known.
    sizes : tensor
        |values|, or the size of what an auxiliary variable was computed from.
    likely : tensor
        Sizes in rows without a bound: at least those of the context's other decisions.
    guesses : tensor
        Likely sizes of variables that are not known; 0 for the others.
    """

    values: torch.Tensor
    sizes: torch.Tensor
    likely: torch.Tensor
    guesses: torch.Tensor

    @classmethod
    def of(cls, z: torch.Tensor, limit: torch.Tensor) -> Point:
        """The point of decisions and their `limits`."""
        likely = torch.maximum(z.abs(), torch.minimum(_reach(z), limit))
        return cls(z, z.abs(), likely, torch.zeros_like(z))

    def padded(self, n: int) -> Point:
        """With zeros for variables that are not known yet."""
        more = (0, n - self.values.shape[-1])
        return Point(*(torch.nn.functional.pad(part, more) for part in self._parts))

    def set(
        self, column: int, value: torch.Tensor, size: torch.Tensor, likely: torch.Tensor
    ) -> None:
        """A variable that has become known."""
        self.values[:, column] = value
        self.sizes[:, column] = torch.maximum(value.abs(), size)
        self.likely[:, column] = torch.maximum(self.sizes[:, column], likely)

    def take(self, contexts: torch.Tensor) -> Point:
        """Some contexts."""
        return Point(*(part[contexts] for part in self._parts))

    def columns(self, numbers: torch.Tensor) -> Point:
        """Some variables."""
        return Point(*(part[:, numbers] for part in self._parts))

    @property
    def _parts(self) -> tuple[torch.Tensor, ...]:
        return self.values, self.sizes, self.likely, self.guesses


def both_row_sizes(
    matrix: torch.Tensor, bound: torch.Tensor, point: Point
) -> tuple[torch.Tensor, torch.Tensor]:
    """The size of rows with a bound and without, ``(n_contexts, n_rows)`` each."""
    size = matrix.abs()
    own = torch.maximum(bound.abs(), _largest_term(size, point.sizes))
    likely = _largest_term(size, torch.maximum(point.likely, point.guesses))
    return own, torch.maximum(own, likely)


def row_sizes(matrix: torch.Tensor, bound: torch.Tensor, point: Point) -> torch.Tensor:
    """s_r of the module's docstring, ``(n_contexts, n_rows)``."""
    own, likely = both_row_sizes(matrix, bound, point)
    return torch.where(_is_zero(matrix, bound, point), likely, own)


def cone_sizes(matrix: torch.Tensor, bound: torch.Tensor, point: Point) -> torch.Tensor:
    """The largest size of the rows of a cone, ``(n_contexts,)``.

    Only a cone without bounds is measured by decisions that are not in it.
    """
    own, likely = both_row_sizes(matrix, bound, point)
    unbounded = _is_zero(matrix, bound, point).all(-1)
    return torch.where(unbounded, likely.amax(-1), own.amax(-1))


def _is_zero(matrix: torch.Tensor, bound: torch.Tensor, point: Point) -> torch.Tensor:
    """Mask ``(n_contexts, n_rows)`` of the bounds that are 0, or rounding of it."""
    return bound.abs() <= _ROUNDING * _largest_term(matrix.abs(), point.likely)


def _reach(z: torch.Tensor) -> torch.Tensor:
    return z.abs().amax(-1, keepdim=True) if z.shape[-1] else z.new_zeros(len(z), 1)


def _largest_term(size: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """max_k size_rk amount_k of nonnegative numbers, ``(n_contexts, n_rows)``."""
    largest = amount.new_zeros(len(amount), size.shape[1])
    for k in range(size.shape[-1]):  # (n_contexts, n_rows, n_z) may be too much at once
        largest = torch.maximum(largest, size[:, :, k] * amount[:, k : k + 1])
    return largest


def ratio(excess: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """excess / size; 0 where there is no excess, whatever the size."""
    return torch.where(excess > 0, excess / size, 0.0)
