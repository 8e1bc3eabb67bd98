"""Bases of the recourse: each solves all scenarios in whose right-hand sides it is feasible.

A basis is the set of rows that are tight. Its multipliers do not depend on the right-hand side, and
so give a lower bound of every scenario's cost; where its point breaks no row, that is the cost. A
scenario is first asked of the basis whose bound is highest; what none of the known ones solves is
solved by HiGHS, which gives one more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import highspy
import numpy as np

from forewise.solvers.aggregation.recourse import Recourse

Array = np.ndarray
_FEASIBLE = 1e-8  # relative violation of a row that is rounding
_EXACT = 1e-9  # of a proof
_TIED = 1e-9  # relative difference of bounds that may be rounding


class Basis(NamedTuple):
    """Rows that are tight, and what follows from them."""

    tight: Array  # numbers of the rows (at most n_u; columns that no row determines stay 0)
    inverse: Array  # (n_u, n_tight) recourse = inverse @ right-hand sides of the tight rows
    price: Array  # (n_rows,) cost = price @ right-hand sides; 0 where a row is loose


class Infeasible(NamedTuple):
    """Weights of rows, at least 0 of inequalities, whose sum has no recourse and is broken."""

    weights: Array  # (n_rows,)


class OutOfBasesError(Exception):
    """There are more bases than asked for, or a scenario's basis cannot be found."""


class Seen(NamedTuple):
    """The bases at one decision, as functions of the moving right-hand sides X."""

    price: Array  # (n_bases, n_moving)
    offset: Array  # (n_bases,) cost = offset + X @ price
    slack: list[Array]  # of each basis (n_rows, n_moving)
    loose: list[Array]  # of each basis (n_rows,) slack = loose + X @ slack.T


@dataclass
class Bases:
    """All bases that were found so far, and the proofs of infeasibility."""

    recourse: Recourse
    most: int
    found: list[Basis] = field(default_factory=list)
    _known: set[tuple[int, ...]] = field(default_factory=set)
    _library: _Library | None = None

    def at(self, z: Array) -> Evaluation:
        """What the known bases say at a decision."""
        return Evaluation(self, z)

    def search(self, sides: Array) -> Infeasible | None:
        """Add the basis that solves these right-hand sides (n_rows,), or prove there is none."""
        if len(self.found) >= self.most:
            raise OutOfBasesError
        self._library = self._library or _Library.of(self.recourse)
        answer = self._library.solve(sides)
        if isinstance(answer, Infeasible):
            # A decision on the very edge of what has recourse is beyond it by rounding.
            broken, size = -answer.weights @ sides, np.abs(answer.weights) @ np.abs(sides)
            if broken > _FEASIBLE * size:
                return answer
            answer = self._library.solve(sides, room=_FEASIBLE / 4)
            if isinstance(answer, Infeasible):
                raise OutOfBasesError
        basis = self._basis(*answer)
        name = tuple(basis.tight.tolist())
        if name in self._known:  # it should have been accepted before
            raise OutOfBasesError
        self._known.add(name)
        self.found.append(basis)
        return None

    def _basis(self, tight: Array, free: Array) -> Basis:
        rows, cost = self.recourse.rows, self.recourse.cost
        n = len(cost)
        unit = np.zeros((len(free), n))
        unit[np.arange(len(free)), free] = 1.0
        matrix = np.concatenate([rows[tight], unit])
        try:
            inverse = np.linalg.inv(matrix)[:, : len(tight)]
            price = np.zeros(len(rows))
            price[tight] = np.linalg.solve(matrix.T, cost)[: len(tight)]
        except np.linalg.LinAlgError as error:
            raise OutOfBasesError from error
        return Basis(tight, inverse, price)


class Evaluation:
    """Bases at one decision; scenarios come in blocks of moving right-hand sides."""

    def __init__(self, bases: Bases, z: Array) -> None:
        self.bases, self.recourse = bases, bases.recourse
        self.common = self.recourse.common(z)
        rows = self.recourse.rows
        self._norms = np.abs(rows).max(1, initial=0.0)
        self._norms[self._norms == 0.0] = 1.0
        self._seen = Seen(np.zeros((0, len(self.recourse.moving))), np.zeros(0), slack=[], loose=[])
        self._grow()

    @property
    def width(self) -> int:
        """Numbers computed of a scenario."""
        return len(self.bases.found) + len(self.recourse.rows)

    def _grow(self) -> None:
        """Take in the bases that are new."""
        seen, moving = self._seen, self.recourse.moving
        new = self.bases.found[len(seen.offset) :]
        for basis in new:
            # Slack of all rows = (I − rows · inverse of the tight) · right-hand sides.
            matrix = np.eye(len(self.common))
            matrix[:, basis.tight] -= self.recourse.rows @ basis.inverse
            matrix[basis.tight] = 0.0
            seen.slack.append(matrix[:, moving] / self._norms[:, None])
            seen.loose.append((matrix @ self.common) / self._norms)
        if new:
            price = np.array([basis.price for basis in new])
            self._seen = seen._replace(
                price=np.concatenate([seen.price, price[:, moving]]),
                offset=np.concatenate([seen.offset, price @ self.common]),
            )

    def solve(self, X: Array) -> tuple[Array, Array] | Infeasible:
        """Basis (n_scenarios,) and cost (n_scenarios,) of a block; or a proof of infeasibility."""
        reach = self._reach(X)
        chosen = np.full(len(X), -1)
        if len(self._seen.offset):
            bounds = X @ self._seen.price.T + self._seen.offset
            self._accept(X, np.arange(len(X)), bounds.argmax(axis=1), chosen, reach)
            self._tied(X, bounds, chosen, reach)
            del bounds
        while (left := np.flatnonzero(chosen < 0)).size:
            sides = self.common.copy()
            sides[self.recourse.moving] = X[left[0]]
            proof = self.bases.search(sides)
            if proof is not None:
                return proof
            self._grow()
            last = len(self._seen.offset) - 1
            self._accept(X, left, np.full(len(left), last), chosen, reach)
            if chosen[left[0]] < 0:
                raise OutOfBasesError
        costs = self._seen.offset[chosen] + (X * self._seen.price[chosen]).sum(1)
        return chosen, costs

    def points(self, X: Array, chosen: Array) -> Array:
        """The recourse (n_scenarios, n_u) of a block whose bases are known."""
        moving = self.recourse.moving
        found = np.empty((len(X), len(self.recourse.cost)))
        for number in np.unique(chosen):
            basis, rows = self.bases.found[number], np.flatnonzero(chosen == number)
            at = np.full(len(self.common), -1)
            at[moving] = np.arange(len(moving))
            places = at[basis.tight]
            sides = np.tile(self.common[basis.tight], (len(rows), 1))
            sides[:, places >= 0] = X[np.ix_(rows, places[places >= 0])]
            found[rows] = sides @ basis.inverse.T
        return found

    def _reach(self, X: Array) -> float:
        """How far the rows are: what violations are relative to."""
        common = np.abs(self.common / self._norms).max(initial=0.0)
        moving = np.abs(X / self._norms[self.recourse.moving]).max(initial=0.0)
        return max(float(common), float(moving)) or 1.0

    def _accept(self, X: Array, rows: Array, wanted: Array, chosen: Array, reach: float) -> None:
        """Choose the wanted basis for those of some rows where it is feasible."""
        order = np.argsort(wanted, kind="stable")
        numbers, starts = np.unique(wanted[order], return_index=True)
        for number, own in zip(numbers, np.split(order, starts[1:]), strict=True):
            at = rows[own]
            slack = X[at] @ self._seen.slack[number].T + self._seen.loose[number]
            equal = self.recourse.n_equal
            worst = slack[:, equal:].min(axis=1, initial=0.0)
            if equal:  # an equality that is not tight depends on others, and must hold with them
                worst = np.minimum(worst, -np.abs(slack[:, :equal]).max(axis=1))
            chosen[at[worst >= -_FEASIBLE * reach]] = number

    def _tied(self, X: Array, bounds: Array, chosen: Array, reach: float) -> None:
        """Where the first of equal bounds is not feasible, the others."""
        left = np.flatnonzero(chosen < 0)
        if not left.size:
            return
        best = bounds[left].max(axis=1, keepdims=True)
        near = bounds[left] >= best - _TIED * np.maximum(np.abs(best), np.abs(bounds).max())
        for number in np.flatnonzero(near.any(axis=0)):
            rows = left[near[:, number] & (chosen[left] < 0)]
            if rows.size:
                self._accept(X, rows, np.full(len(rows), number), chosen, reach)


class _Library:
    """HiGHS, warm, on one scenario after the other; in units in which rows and costs are one."""

    def __init__(self, recourse: Recourse, highs: highspy.Highs, norms: Array) -> None:
        self.recourse, self.highs, self.norms = recourse, highs, norms

    @classmethod
    def of(cls, recourse: Recourse) -> _Library:
        rows, cost = recourse.rows, recourse.cost
        norms = np.abs(rows).max(1, initial=0.0)
        norms[norms == 0.0] = 1.0
        norms = np.exp2(np.round(np.log2(norms)))
        highs = highspy.Highs()
        for option, value in {
            "output_flag": False,
            "threads": 1,
            "presolve": "off",  # a warm basis is all that is needed, and rays survive
            "solver": "simplex",
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        }.items():
            highs.setOptionValue(option, value)
        lp, n = highspy.HighsLp(), len(cost)
        lp.num_col_, lp.num_row_ = n, len(rows)
        lp.col_cost_ = cost / (np.abs(cost).max(initial=0.0) or 1.0)
        lp.col_lower_ = np.full(n, -highspy.kHighsInf)
        lp.col_upper_ = np.full(n, highspy.kHighsInf)
        lp.row_lower_ = np.full(len(rows), -highspy.kHighsInf)
        lp.row_upper_ = np.full(len(rows), highspy.kHighsInf)
        scaled = rows / norms[:, None]
        filled = scaled != 0
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.concatenate([[0], filled.sum(1).cumsum()]).astype(np.int32)
        lp.a_matrix_.index_ = np.nonzero(filled)[1].astype(np.int32)
        lp.a_matrix_.value_ = scaled[filled]
        highs.passModel(lp)
        return cls(recourse, highs, norms)

    def solve(self, sides: Array, room: float = 0.0) -> tuple[Array, Array] | Infeasible:
        """Tight rows and undetermined columns, or a proof that nothing is feasible.

        Rows may be broken by `room`, relative to the largest of them.
        """
        upper = sides / self.norms
        upper = upper / (np.abs(upper).max(initial=0.0) or 1.0)
        lower = np.where(self.recourse.is_equality, upper - room, -highspy.kHighsInf)
        upper = upper + room
        numbers = np.arange(len(upper), dtype=np.int32)
        self.highs.changeRowsBounds(len(upper), numbers, lower, upper)
        self.highs.run()
        status = self.highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return self._proof(upper)
        if status != highspy.HighsModelStatus.kOptimal:
            raise OutOfBasesError
        basis, basic = self.highs.getBasis(), highspy.HighsBasisStatus.kBasic
        tight = np.flatnonzero([found != basic for found in basis.row_status])
        free = np.flatnonzero([found != basic for found in basis.col_status])
        return tight, free

    def _proof(self, sides: Array) -> Infeasible:
        _, found, ray = self.highs.getDualRay()
        if not found:
            raise OutOfBasesError
        weights = np.array(ray) / (np.abs(ray).max(initial=0.0) or 1.0)
        weights = weights if weights @ sides < 0 else -weights
        equal = self.recourse.n_equal
        weights[equal:] = np.maximum(weights[equal:], 0.0)
        weights /= self.norms
        left = np.abs(weights @ self.recourse.rows).max(initial=0.0)
        if left > _EXACT * np.abs(weights[:, None] * self.recourse.rows).max(initial=1e-300):
            raise OutOfBasesError
        return Infeasible(weights)
