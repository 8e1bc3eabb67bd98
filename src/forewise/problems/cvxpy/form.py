"""CanonicalForm: a parametrised convex program, perhaps with integers, as plain arrays.

With θ = (outcome, given), every part an affine map of θ:

    min   ½ x'P(θ)x + q(θ)'x + c(θ) + Σ_k α_k(θ) β_k(θ)
    s.t.  A(θ) x ≤ b(θ),  with = in the rows of a mask, and b(θ) − A(θ) x in a cone in others
          x integers, in the columns of a mask

The products are constants in x that presolving leaves behind: (y − z)² has a y². `canonicalise`
makes a form from CVXPY, `presolve` makes it smaller, `lift` makes scenario programs of it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from forewise.problems.cones import ConeKind, Cones

Array = np.ndarray

_KINDS = (ConeKind.SECOND_ORDER, ConeKind.EXPONENTIAL)


@dataclass(frozen=True, eq=False)
class Terms:
    """The part of a matrix that depends on θ: entry (row, column) += coefficient · θ[parameter]."""

    row: Array
    column: Array
    parameter: Array
    coefficient: Array

    @classmethod
    def none(cls) -> Terms:
        """No entry depends on θ."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, nothing, np.zeros(0))

    def __len__(self) -> int:
        return len(self.row)

    def where(self, mask: Array) -> Terms:
        """The terms of a mask."""
        return Terms(*(getattr(self, field.name)[mask] for field in fields(self)))

    def moved(self, row_place: Array, column_place: Array) -> Terms:
        """The terms with other numbers for their rows and columns."""
        return replace(self, row=row_place[self.row], column=column_place[self.column])


@dataclass(frozen=True, eq=False)
class CanonicalForm:
    """A program of n variables and m rows whose data depend on n_θ numbers.

    Attributes
    ----------
    n_outcomes : int
        θ[:n_outcomes] are the outcomes, the rest is given.
    P, P_terms : array (n, n), and what depends on θ
    q : array (n, n_θ + 1)
        Affine maps of θ have their constant in the last column.
    c : array (n_θ + 1,)
    alpha, beta : arrays (n_products, n_θ + 1)
    A, A_terms : array (m, n), and what depends on θ
    b : array (m, n_θ + 1)
    equality : mask (m,)
    cone : array (m,)
        The number of each row's cone, −1 for rows in none. A cone's rows are in its order.
    cone_kind : array (n_cones,)
        A number for each cone's kind.
    decision : array (n_decisions,)
        Columns of the decision, in the user's order.
    added : mask (n,)
        Columns that are not a user's variable.
    integer : mask (n,)
        Columns that are integers.
    threshold, excess, level : arrays (n_chances,)
        Of each chance constraint the columns of its two variables, and its level.
    """

    n_outcomes: int
    P: Array
    P_terms: Terms
    q: Array
    c: Array
    alpha: Array
    beta: Array
    A: Array
    A_terms: Terms
    b: Array
    equality: Array
    cone: Array
    cone_kind: Array
    decision: Array
    added: Array
    integer: Array
    threshold: Array
    excess: Array
    level: Array

    @staticmethod
    def kind_number(kind: ConeKind) -> int:
        """The number of a kind in `cone_kind`."""
        return _KINDS.index(kind)

    def cones_of(self, rows: Array) -> Cones:
        """The cones of some rows, all the rows of each."""
        numbers, sizes = np.unique(self.cone[rows], return_counts=True)
        kinds = tuple(_KINDS[kind] for kind in self.cone_kind[numbers])
        return Cones(kinds, tuple(int(size) for size in sizes))

    @property
    def is_linear(self) -> bool:
        """Whether costs and rows are linear, and in no cone."""
        return not (self.P.any() or len(self.P_terms) or len(self.cone_kind))

    def products(self) -> sp.csr_array:
        """Sparse mask ``(n, n)`` of the variables that the cost multiplies with each other."""
        rows = np.flatnonzero(self.P.any(1))
        row, column = np.nonzero(self.P[rows])
        row = np.concatenate([rows[row], self.P_terms.row])
        column = np.concatenate([column, self.P_terms.column])
        return sp.csr_array((np.ones(len(row), dtype=bool), (row, column)), shape=self.P.shape)

    @property
    def n_parameters(self) -> int:
        """Length of θ."""
        return self.q.shape[1] - 1

    def is_outcome(self, parameter: Array) -> Array:
        """Which of some parameters are outcomes."""
        return parameter < self.n_outcomes

    def pattern(self) -> Array:
        """Mask ``(m, n)`` of the entries of A that are not always 0."""
        pattern = self.A != 0
        pattern[self.A_terms.row, self.A_terms.column] = True
        return pattern

    def is_decision(self) -> Array:
        """Mask ``(n,)`` of the decision's columns."""
        mask = np.zeros(len(self.q), dtype=bool)
        mask[self.decision] = True
        return mask

    def restricted(self, rows: Array, columns: Array) -> CanonicalForm:
        """The form without the rows and columns that are not in the masks, which nothing needs."""
        if rows.all() and columns.all():
            return self
        row_place, column_place = np.cumsum(rows) - 1, np.cumsum(columns) - 1
        P_terms, A_terms = self.P_terms, self.A_terms.where(rows[self.A_terms.row])
        return replace(
            self,
            P=self.P if columns.all() else self.P[columns].compress(columns, axis=1),
            P_terms=P_terms.moved(column_place, column_place),
            q=self.q[columns],
            A=self.A[rows].compress(columns, axis=1),
            A_terms=A_terms.moved(row_place, column_place),
            b=self.b[rows],
            equality=self.equality[rows],
            cone=self.cone[rows],
            decision=column_place[self.decision],
            threshold=column_place[self.threshold],
            excess=column_place[self.excess],
            added=self.added[columns],
            integer=self.integer[columns],
        )

    def state(self) -> dict[str, Any]:
        """All of it as arrays by name, sparse where it pays: what is stored."""
        state: dict[str, Any] = {"n_outcomes": self.n_outcomes}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Terms):
                for part in fields(value):
                    state[f"{field.name}.{part.name}"] = getattr(value, part.name)
            elif field.name in _SPARSE:
                place = np.flatnonzero(value)
                state[f"{field.name}.shape"] = np.array(value.shape)
                state[f"{field.name}.place"] = place
                state[f"{field.name}.value"] = value.reshape(-1)[place]
            elif field.name != "n_outcomes":
                state[field.name] = value
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CanonicalForm:
        """The form that `state` was taken of."""
        made: dict[str, Any] = {}
        for field in fields(cls):
            name = field.name
            if name.endswith("_terms"):
                made[name] = Terms(*(state[f"{name}.{part.name}"] for part in fields(Terms)))
            elif name in _SPARSE:
                value = np.zeros(tuple(int(size) for size in state[f"{name}.shape"]))
                value.reshape(-1)[state[f"{name}.place"]] = state[f"{name}.value"]
                made[name] = value
            else:
                made[name] = state[name]
        return cls(**made)


_SPARSE = ("P", "q", "alpha", "beta", "A", "b")
