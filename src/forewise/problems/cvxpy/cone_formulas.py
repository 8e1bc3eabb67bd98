"""Formulas of cones: what they ask of one variable, and by how much they are violated.

A second-order cone is violated by |x| − t, an exponential one by how far (a, b, c) must go along
(−1, 1, 1), both divided by the largest size of their rows. A product, |x|² ≤ p q, stands in a
second-order cone as |(2x, p − q)| ≤ p + q; it is violated by |x|² − p q, divided by the larger of
the two, because p may be far from the size of q. May import: its siblings `cones`,
`constraint_sizes`, `program`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from forewise.problems.cones import ConeKind
from forewise.problems.constraint_sizes import (
    Point,
    both_row_sizes,
    cone_sizes,
    ratio,
    row_sizes,
)
from forewise.problems.programs import apply

#: The direction in which a point always enters an exponential cone.
INWARDS = (-1.0, 1.0, 1.0)
SizeOf = Callable[[torch.Tensor], torch.Tensor]
_BISECTIONS = 200


def cone_violation(kind: ConeKind, C: torch.Tensor, k: torch.Tensor, point: Point) -> torch.Tensor:
    """Violation of k − C x in a cone at known variables x, ``(n_contexts,)``."""
    rows = ConeRows(C, k, point.values)
    turned = rows.turned(range(1, C.shape[1])) if kind is ConeKind.SECOND_ORDER else None
    if turned is None:
        return ratio(_excess(kind, rows.rest), cone_sizes(C, k, point))
    p, q = rows.factors(turned)
    others = [i for i in range(1, C.shape[1]) if i != turned]
    square = rows.rest[:, others].square().sum(-1)
    product = torch.ones_like(square)
    for sign in (-1, 1):
        row, bound = C[:, :1] + sign * C[:, [turned]], k[:, :1] + sign * k[:, [turned]]
        product = product * row_sizes(row, bound, point)[:, 0]
    own, _ = both_row_sizes(C[:, others], k[:, others], point)
    # The product of two negative factors is no room.
    excess = torch.where((p < 0) & (q < 0), p * q, square - p * q).clamp_min(0)
    return ratio(excess, torch.maximum(product, own.square().sum(-1)))


@dataclass(frozen=True, eq=False)
class ConeRows:
    """A cone without the variable that it bounds: k − C x, ``(n_contexts, n_rows)``.

    Methods give the bound of that variable times its coefficient, and how its size follows from
    those of the rows.
    """

    C: torch.Tensor
    k: torch.Tensor
    x: torch.Tensor

    @property
    def rest(self) -> torch.Tensor:
        """The rows' values."""
        return self.k - apply(self.C, self.x)

    def exponential(self) -> tuple[torch.Tensor, SizeOf]:
        """t + c ≥ b exp(a / b)."""
        a, b, c = self.rest.unbind(-1)
        ratio = torch.where(b > 0, a / b, torch.where(a > 0, torch.inf, -torch.inf))
        power = torch.where(b > 0, b * ratio.exp(), torch.where(a > 0, torch.inf, 0.0))
        size = torch.where(power > 0, power * (1 + ratio.abs()), 0.0)
        return power - c, lambda sizes: torch.maximum(size, sizes[:, 2])

    def logarithm(self) -> tuple[torch.Tensor, SizeOf]:
        """t + a ≤ b log(c / b)."""
        a, b, c = self.rest.unbind(-1)
        height = torch.where(b > 0, b * (c.clamp_min(0) / b).log(), 0.0)
        size = torch.maximum(height.abs(), b.abs())
        return height - a, lambda sizes: torch.maximum(size, sizes[:, 0])

    def norm(self) -> tuple[torch.Tensor, SizeOf]:
        """t + head ≥ |x|."""
        rest = self.rest
        return rest[:, 1:].norm(dim=-1) - rest[:, 0], lambda sizes: sizes.amax(-1)

    def square(self, turned: int, same: bool) -> tuple[torch.Tensor, SizeOf]:
        """p (2 t + q) ≥ |x|²: t stands in the head and in one row, whose factors are turned."""
        p, q = self.factors(turned) if same else reversed(self.factors(turned))
        others = [i for i in range(1, self.C.shape[1]) if i != turned]
        square = self.rest[:, others].square().sum(-1)
        ratio = torch.where(p > 0, square / p, torch.where(square > 0, torch.inf, 0.0))

        def size_of(sizes: torch.Tensor) -> torch.Tensor:
            largest = sizes[:, others].square().sum(-1)
            return torch.maximum(torch.where(p > 0, largest / p, ratio), q.abs())

        return ratio - q, size_of

    def root(self, place: int, toward: torch.Tensor) -> tuple[torch.Tensor, SizeOf]:
        """|rest − t| ≤ √(head² − |x|²), with t as far as it goes against `toward`, ±1."""
        others = [i for i in range(1, self.C.shape[1]) if i != place]
        rest = self.rest
        left = rest[:, 0].square()
        turned = self.turned(others)
        if turned is not None:
            p, q = self.factors(turned)
            left, others = p * q, [i for i in others if i != turned]
        root = (left - rest[:, others].square().sum(-1)).clamp_min(0).sqrt()

        def size_of(sizes: torch.Tensor) -> torch.Tensor:
            squares = torch.maximum(left.abs(), sizes[:, others].square().sum(-1))
            return torch.maximum(squares.sqrt(), sizes[:, place])

        return rest[:, place] - toward * root, size_of

    def turned(self, rows: Iterable[int]) -> int | None:
        """The first row whose sum and difference with the head are factors of their own.

        One of them is a number and the other is not, or no variable is in both.
        """
        for row in rows:
            minus, plus = (
                torch.cat(
                    [
                        (self.C[:, 0] + sign * self.C[:, row] != 0).any(0),
                        (self.k[:, :1] + sign * self.k[:, [row]] != 0).any(0),
                    ]
                )
                for sign in (-1, 1)
            )
            varies = bool(minus[:-1].any()), bool(plus[:-1].any())
            if any(varies) and (not all(varies) or not bool((minus & plus).any())):
                return row
        return None

    def factors(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Head minus a row and head plus it: of the rows, because their values may cancel."""
        minus, plus = (
            self.k[:, 0]
            + sign * self.k[:, row]
            - apply((self.C[:, 0] + sign * self.C[:, row]).unsqueeze(1), self.x)[:, 0]
            for sign in (-1, 1)
        )
        return minus, plus


def _excess(kind: ConeKind, values: torch.Tensor) -> torch.Tensor:
    """How far points ``(n_contexts, size)`` must go to enter the cone, ``(n_contexts,)``."""
    if kind is ConeKind.SECOND_ORDER:
        return (values[:, 1:].norm(dim=-1) - values[:, 0]).clamp_min(0)
    inwards = values.new_tensor(INWARDS)
    low, high = torch.zeros_like(values[:, 0]), values.abs().amax(-1) * 2
    inside = _in_exponential_cone(values)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enters = _in_exponential_cone(values + middle.unsqueeze(-1) * inwards)
        low, high = torch.where(enters, low, middle), torch.where(enters, middle, high)
    return torch.where(inside, 0.0, high)


def _in_exponential_cone(values: torch.Tensor) -> torch.Tensor:
    a, b, c = values.unbind(-1)
    # b exp(a / b) ≤ c, with logarithms so that nothing overflows.
    safe = torch.where((b > 0) & (c > 0), b, 1.0)
    curved = (b > 0) & (c > 0) & (a <= safe * (torch.where(c > 0, c, 1.0) / safe).log())
    return curved | ((b == 0) & (a <= 0) & (c >= 0))
