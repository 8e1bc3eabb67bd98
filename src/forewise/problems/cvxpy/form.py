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

#: By their numbers in `CanonicalForm.cone_kind`.
CONE_KINDS = (ConeKind.SECOND_ORDER, ConeKind.EXPONENTIAL)
_SPARSE = ("P", "q", "alpha", "beta", "A", "b")  # in stored problems


@dataclass(frozen=True, eq=False)
class Terms:
    """The part of a matrix that depends on θ: entry (row, column) += coefficient · θ[parameter]."""

    row: Array
    column: Array
    parameter: Array
    coefficient: Array

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

    Affine maps of θ are arrays ``(..., n_θ + 1)`` with their constant last. Matrices are a constant
    part and `Terms`.
    """

    n_outcomes: int  # θ[:n_outcomes] are the outcomes, the rest is given
    P: Array  # (n, n)
    P_terms: Terms
    q: Array  # (n, n_θ + 1)
    c: Array  # (n_θ + 1,)
    alpha: Array  # (n_products, n_θ + 1)
    beta: Array
    A: Array  # (m, n)
    A_terms: Terms
    b: Array  # (m, n_θ + 1)
    equality: Array  # mask (m,)
    cone: Array  # (m,), the number of each row's cone, −1 for rows in none; rows are in its order
    cone_kind: Array  # (n_cones,), numbers of kinds
    decision: Array  # (n_decisions,), columns of the decision, in the user's order
    added: Array  # mask (n,) of the columns that are not a user's variable
    integer: Array  # mask (n,)
    threshold: Array  # (n_chances,), columns of the two variables of each chance constraint
    excess: Array
    level: Array

    def cones_of(self, rows: Array) -> Cones:
        """The cones of some rows, all the rows of each."""
        numbers, sizes = np.unique(self.cone[rows], return_counts=True)
        kinds = tuple(CONE_KINDS[kind] for kind in self.cone_kind[numbers])
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
        """Arrays by name, sparse where it pays: what is stored."""
        state: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Terms):
                state |= {f"{name}.{part}": array for part, array in vars(value).items()}
            elif name in _SPARSE:
                place = np.flatnonzero(value)
                state[f"{name}.shape"] = np.array(value.shape)
                state[f"{name}.place"] = place
                state[f"{name}.value"] = value.reshape(-1)[place]
            else:
                state[name] = value
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
