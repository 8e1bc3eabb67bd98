"""Auxiliary variables whose best value is a formula in the decision.

|z_k|, a norm, a square, a logarithm: CVXPY writes each with a variable t and rows or cones that
bound it from one side, t ≥ f(z). Where everything else asks for a small t, its best value is f(z);
likewise for t ≤ f(z). Such variables are found here one after the other, those that stand on others
after them. What is left over is `auxiliary`'s business. May import: its siblings
`cone_formulas`, `cones`, `constraint_sizes`, `program`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from forewise.problems.cones import ConeKind
from forewise.problems.constraint_sizes import Point, both_row_sizes
from forewise.problems.cvxpy.cone_formulas import ConeRows
from forewise.problems.programs import apply, joined

if TYPE_CHECKING:
    from forewise.problems.cvxpy.feasibility import CvxpyConstraints

_HUGE = 1e300  # in the place of infinity, which has no ratio to itself


@dataclass(eq=False)
class Definitions:
    """The values of auxiliary variables, as far as they are known.

    Attributes
    ----------
    constraints : CvxpyConstraints
    point : Point
        All variables (n_contexts, n_x); 0 for those that are not known.
    known : mask (n_x,)
    stands_on : mask (n_x, n_decisions)
        The decisions that each known variable depends on.
    G, cones : masks of the rows and cones that count: a variable that is bounded from one side
        only takes its own away.
    """

    constraints: CvxpyConstraints
    point: Point
    known: np.ndarray
    stands_on: np.ndarray
    G: np.ndarray
    cones: np.ndarray

    @classmethod
    def of(cls, constraints: CvxpyConstraints, point: Point) -> Definitions:
        """All that can be found."""
        n, n_x = constraints.n_decisions, constraints.G.shape[-1]
        found = cls(
            constraints,
            point.padded(n_x),
            known=np.arange(n_x) < n,
            stands_on=np.eye(n_x, n, dtype=bool),
            G=np.ones(constraints.G.shape[1], dtype=bool),
            cones=np.ones(len(constraints.cones), dtype=bool),
        )
        if n < n_x:
            found._find()
        return found

    def _find(self) -> None:
        own = self.constraints
        self._rows = (own.G != 0).any(0).numpy()
        self._equal = (own.E != 0).any(0).numpy()
        self._in_cones = (
            np.zeros((0, len(self.known)), dtype=bool)
            if own.C is None
            else (own.C != 0).any(0).numpy()
        )
        whole = np.zeros(len(self.known), dtype=bool) if own.whole is None else own.whole.numpy()
        waiting = [int(t) for t in np.flatnonzero(~self.known & ~whole)]
        again = True
        while again:
            left = [t for t in waiting if not self._settle(t)]
            again, waiting = len(left) < len(waiting), left
        self._estimate(np.flatnonzero(~self.known).tolist())

    def _estimate(self, unknown: list[int]) -> None:
        """How large variables that stay unknown are likely to be: what their rows leave to them.

        First by rows with known variables or bounds, then by rows with others of their kind.
        """
        own = self.constraints
        blocks = [(own.G[:, self.G], own.h[:, self.G]), (own.E, own.e)]
        if own.C is not None and own.k is not None:
            kept = self.cones[own.cones.of_row]
            blocks.append((own.C[:, kept], own.k[:, kept]))
        left = unknown
        while left:
            guesses = torch.stack([self._guess(t, blocks) for t in left], 1)
            self.point.guesses[:, left] = guesses
            found = (guesses > 0).all(0).tolist()
            if not any(found):
                break
            left = [t for t, is_found in zip(left, found, strict=True) if not is_found]

    def _guess(self, t: int, blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        """The least that a row leaves to t; 0 where none tells."""
        least = self.point.values.new_full((len(self.point.values),), torch.inf)
        for matrix, bound in blocks:
            _, size = both_row_sizes(matrix, bound, self.point)
            own = matrix[:, :, t].abs()
            told = torch.where((own > 0) & (size > 0), size / own, torch.inf)
            least = joined([told, least.unsqueeze(-1)], -1).amin(-1)
        return torch.where(least.isinf(), 0.0, least)

    def _settle(self, t: int) -> bool:
        """Find a variable's value, or take its rows away; False where neither can be done."""
        if self._equal[:, t].any():
            return self._by_equation(t)
        G = self.constraints.G[:, :, t]
        rows = np.flatnonzero(self.G & self._rows[:, t]).tolist()
        of_cone = self.constraints.cones.of_row
        cones = [j for j in np.unique(of_cone[self._in_cones[:, t]]).tolist() if self.cones[j]]
        below = [r for r in rows if bool((G[:, r] < 0).all())]
        above = [r for r in rows if bool((G[:, r] > 0).all())]
        if len(below) + len(above) < len(rows):
            return False
        inside = [j for j in cones if self._is_inside(j, t)]
        if inside and self._as_small_size(t, below, [j for j in cones if j not in inside]):
            return True
        for sign, bounds, uses in ((1, below, above), (-1, above, below)):
            if not all(sign in self._bounds(j, t) for j in cones):
                continue
            if not bounds and not cones:
                self.G[uses] = False
                return True
            if all(self._alone(self._rows[r], t) for r in bounds) and all(
                self._alone(self._in_cones[of_cone == j].any(0), t) for j in cones
            ):
                self._set(t, *self._told(t, sign, bounds, cones))
                return True
        # What is bounded from one side only can go as far as its rows and cones ask.
        for sign, bounds, uses in ((1, below, above), (-1, above, below)):
            if not uses and all(self._bounds(j, t) == (sign,) for j in cones):
                self.G[bounds] = False
                self.cones[cones] = False
                return True
        return False

    def _is_inside(self, j: int, t: int) -> bool:
        """Whether a norm has t as one of its entries, by itself."""
        matrix, bound = self.constraints.cone_rows(j)
        rows = (matrix[:, :, t] != 0).any(0)
        others = matrix[:, rows].clone()
        others[:, :, t] = 0
        kind = self.constraints.cones.kinds[j]
        by_itself = not bool(rows[0]) and not bool(others.any()) and not bool(bound[:, rows].any())
        return kind is ConeKind.SECOND_ORDER and by_itself

    def _as_small_size(self, t: int, rows: list[int], cones: list[int]) -> bool:
        """Define t ≥ f where norms and all else ask for a small t: f must not be negative."""
        of_cone = self.constraints.cones.of_row
        known = all(self._alone(self._rows[r], t) for r in rows) and all(
            1 in self._bounds(j, t) and self._alone(self._in_cones[of_cone == j].any(0), t)
            for j in cones
        )
        if not known or (not rows and not cones):
            return False
        value, size, likely, touched = self._told(t, 1, rows, cones)
        if bool((value < 0).any()):
            return False
        self._set(t, value, size, likely, touched)
        return True

    def _alone(self, touched: np.ndarray, t: int) -> bool:
        """Whether t is the only variable of those touched that is not known."""
        return not np.any(touched & ~self.known & (np.arange(len(touched)) != t))

    def _by_equation(self, t: int) -> bool:
        own = self.constraints
        for r in np.flatnonzero(self._equal[:, t]).tolist():
            if self._alone(self._equal[r], t) and bool((own.E[:, r, t] != 0).all()):
                value, size, likely = (x[:, 0] for x in self._rest(own.E, own.e, [r], t))
                self._set(t, value, size, likely, self._equal[r])
                return True
        return False

    def _bounds(self, j: int, t: int) -> tuple[int, ...]:
        """1 where a cone says t ≥ f of its other variables, −1 for t ≤ f; both, or neither."""
        matrix, _ = self.constraints.cone_rows(j)
        column = matrix[:, :, t]
        places = (column != 0).any(0).nonzero().squeeze(-1).tolist()
        if not bool((column[:, places] != 0).all()):
            return ()
        grows = bool((column[:, places[0]] < 0).all())
        if self.constraints.cones.kinds[j] is ConeKind.EXPONENTIAL:
            signs: dict[int, tuple[int, ...]] = {0: (-1,), 2: (1,)}
            return signs.get(places[0], ()) if grows and len(places) == 1 else ()
        if places[0] > 0:
            return (1, -1) if len(places) == 1 else ()
        if len(places) == 2:
            grows = grows and bool((column[:, places[1]].abs() == column[:, 0].abs()).all())
        return (1,) if grows and len(places) <= 2 else ()

    def _told(
        self, t: int, sign: int, rows: list[int], cones: list[int]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, np.ndarray]:
        """What rows and cones say of t, its size with a bound and without, and what they touch."""
        own = self.constraints
        told = [self._rest(own.G, own.h, rows, t)]
        touched = np.asarray(self._rows[rows].any(0))
        for j in cones:
            value, size, likely = self._of_cone(j, t, sign)
            told.append((value.unsqueeze(-1), size.unsqueeze(-1), likely.unsqueeze(-1)))
            touched = touched | self._in_cones[own.cones.of_row == j].any(0)
        values, sizes, likelies = (torch.cat(parts, -1) for parts in zip(*told, strict=True))
        at = (sign * values).argmax(-1, keepdim=True)
        # The size is that of the bound that tells: others may be far away.
        value, size, likely = (x.gather(-1, at)[:, 0] for x in (values, sizes, likelies))
        return value, size, likely, touched

    def _set(
        self,
        t: int,
        value: torch.Tensor,
        size: torch.Tensor,
        likely: torch.Tensor,
        touched: np.ndarray,
    ) -> None:
        value, size, likely = (
            x.nan_to_num(nan=_HUGE).clamp(-_HUGE, _HUGE) for x in (value, size, likely)
        )
        self.point.set(t, value, size, likely)
        self.stands_on[t] = self.stands_on[touched & self.known].any(0)
        self.known[t] = True

    def _rest(
        self, block: torch.Tensor, bound: torch.Tensor, rows: list[int], t: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What rows say of t, and its size with a bound and without, ``(n_contexts, n_rows)``."""
        matrix, right = block[:, rows].clone(), bound[:, rows]
        own = matrix[:, :, t].clone()
        matrix[:, :, t] = 0
        value = (right - apply(matrix, self.point.values)) / own
        size, likely = both_row_sizes(matrix, right, self.point)
        return value, size / own.abs(), likely / own.abs()

    def _of_cone(
        self, j: int, t: int, sign: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What a cone says of t, and its size with a bound and without, ``(n_contexts,)`` each."""
        matrix, bound = self.constraints.cone_rows(j)
        column = matrix[:, :, t].clone()
        matrix = matrix.clone()
        matrix[:, :, t] = 0
        places = (column != 0).any(0).nonzero().squeeze(-1).tolist()
        cone = ConeRows(matrix, bound, self.point.values)
        if self.constraints.cones.kinds[j] is ConeKind.EXPONENTIAL:
            value, size_of = cone.exponential() if places == [2] else cone.logarithm()
        elif places == [0]:
            value, size_of = cone.norm()
        elif len(places) == 2:
            value, size_of = cone.square(places[1], bool((column[:, places[1]] < 0).all()))
        else:
            # The row is the rest minus column times t, which may have either sign.
            toward = -sign * column[:, places[0]].sign()
            value, size_of = cone.root(places[0], toward)
            value = value * column[:, places[0]].sign()
        grows = column[:, places[0]].abs() * (2 if len(places) == 2 else 1)
        size, likely = (size_of(s) for s in both_row_sizes(matrix, bound, self.point))
        if places != [0]:
            likely = size  # what is likely of a decision says nothing of its square
        return value / grows, size / grows, likely / grows
