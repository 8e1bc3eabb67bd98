"""A smaller canonical form with the same solutions: variables that CVXPY added are removed again.

CVXPY gives a squared expression a variable of its own, t = expression, and one to each limit of
|x| and other maxima. Solvers see the problem's diagonal blocks once these are gone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from forewise.problems.cvxpy.form import Array, CanonicalForm


def presolve(form: CanonicalForm) -> CanonicalForm:
    """All steps: replace copies and limits, drop empty rows, shift pairs of rows."""
    return shift_pairs(drop_empty_rows(substitute_limits(substitute_copies(form))))


def substitute_copies(form: CanonicalForm) -> CanonicalForm:
    """Replace every added variable t with t = Σ_s c_s x_s + β(θ) by the right-hand side.

    A squared t is only replaced where that does not multiply the decision with other variables:
    scenario programs have no such products in their cost.
    """
    P, A, q, b, c = (part.copy() for part in (form.P, form.A, form.q, form.b, form.c))
    alpha, beta = list(form.alpha), list(form.beta)
    n, m = len(q), len(A)
    fixed_row = np.ones(m, dtype=bool)
    fixed_row[form.A_terms.row] = False
    is_decision = form.is_decision()
    removable = form.added & _fixed_columns(form) & _unmixed(form, is_decision)
    kept_row, kept_column = np.ones(m, dtype=bool), np.ones(n, dtype=bool)
    for i in np.flatnonzero(form.equality & fixed_row):
        columns = np.flatnonzero(A[i])
        candidates = columns[(np.abs(A[i, columns]) == 1) & removable[columns]]
        for t in candidates[np.lexsort((-candidates, P[candidates, candidates] != 0))]:
            others = columns[columns != t]
            mixed = is_decision[others].any() and not is_decision[others].all()
            across = np.flatnonzero(P[t])
            if mixed and len(across):
                continue
            coefficient, shift = -A[i, others] / A[i, t], b[i] / A[i, t]
            # x_t = coefficient·x_others + shift, in the costs …
            alpha.append(q[t] + 0.5 * P[t, t] * shift)
            beta.append(shift)
            curvature, across = P[t, t], across[across != t]
            q[t] += curvature * shift
            q[others] += coefficient[:, None] * q[t]
            if len(across):
                slope = P[t, across]
                q[across] += slope[:, None] * shift
                P[others[:, None], across] += coefficient[:, None] * slope
                P[across[:, None], others] += slope[:, None] * coefficient
            if curvature:
                P[others[:, None], others] += curvature * coefficient[:, None] * coefficient
            P[t], P[:, t], q[t] = 0, 0, 0
            # … and in the other rows.
            kept_row[i] = kept_column[t] = False
            rows = np.flatnonzero(A[:, t])
            rows = rows[rows != i]
            b[rows] -= A[rows, t, None] * shift
            A[rows[:, None], others] += A[rows, t, None] * coefficient
            A[:, t], A[i] = 0, 0
            break
    left, right = (np.array(part).reshape(-1, len(c)) for part in (alpha, beta))
    # A product of which one factor is a constant is affine, and the others are few.
    fixed_left, fixed_right = ~left[:, :-1].any(1), ~right[:, :-1].any(1)
    c += left[fixed_left, -1] @ right[fixed_left]
    c += right[~fixed_left & fixed_right, -1] @ left[~fixed_left & fixed_right]
    both = ~fixed_left & ~fixed_right
    smaller = replace(form, P=P, A=A, q=q, b=b, c=c, alpha=left[both], beta=right[both])
    return smaller.restricted(kept_row, kept_column)


def _fixed_columns(form: CanonicalForm) -> Array:
    """Mask of the columns of A and P that do not depend on θ."""
    fixed = np.ones(len(form.q), dtype=bool)
    for columns in (form.A_terms.column, form.P_terms.row, form.P_terms.column):
        fixed[columns] = False
    return fixed


def _unmixed(form: CanonicalForm, is_decision: Array) -> Array:
    """Mask of the columns whose quadratic term is, or can be made, one of the decision alone, or of
    other variables alone.
    """
    n, pattern = len(form.q), form.pattern()
    # A row with one variable besides the decision defines that variable by the decision.
    others = pattern[form.equality] & ~is_decision
    becomes_decision = is_decision | (others[others.sum(1) == 1].any(0) & form.added)
    _, label = connected_components(form.products(), directed=False)
    size, of_decision = np.bincount(label, minlength=n), np.bincount(label, becomes_decision, n)
    return ((of_decision == 0) | (of_decision == size))[label]


def substitute_limits(form: CanonicalForm) -> CanonicalForm:
    """Replace every added variable that costs nothing and only passes a limit on by that limit.

    |x| ≤ p has t ≥ x, t ≥ −x and t ≤ p: with t = p, which is as good as any t, x ≤ p and −x ≤ p.
    """
    A, b, touched = form.A.copy(), form.b.copy(), form.pattern()
    plain = ~form.equality & (form.cone < 0)
    limits = touched.sum(1) == 1
    limits[form.A_terms.row] = False
    idle = form.added & ~form.integer & ~form.P.any(1) & ~form.q.any(1) & ~touched[~plain].any(0)
    idle[[*form.P_terms.row, *form.P_terms.column, *form.A_terms.column]] = False
    idle[[*form.decision, *form.threshold, *form.excess]] = False
    kept_row, kept_column = np.ones(len(A), dtype=bool), np.ones(len(form.q), dtype=bool)
    for t in np.flatnonzero(idle & touched[limits].any(0)):
        rows = np.flatnonzero(A[:, t])
        above = rows[A[rows, t] > 0]
        below = rows[A[rows, t] < 0]
        for limit, others in ((above, below), (below, above)):
            if len(limit) != 1 or not limits[limit[0]]:
                continue
            left = b[others] - A[others, t, None] * (b[limit] / A[limit, t])
            between = left[limits[others]]  # two limits of t itself, which must leave it room
            if not between[:, :-1].any() and (between[:, -1] >= 0).all():
                b[others], A[:, t] = left, 0
                kept_row[limit] = kept_column[t] = False
                break
    return replace(form, A=A, b=b).restricted(kept_row, kept_column)


def drop_empty_rows(form: CanonicalForm) -> CanonicalForm:
    """Drop the rows without variables that hold whatever θ is."""
    touched = form.pattern().any(1) | (form.cone >= 0)  # an entry of a cone matters even if it is 0
    constant = ~form.b[:, :-1].any(1)
    holds = np.where(form.equality, form.b[:, -1] == 0, form.b[:, -1] >= 0)
    return form.restricted(touched | ~(constant & holds), np.ones(len(form.q), dtype=bool))


def shift_pairs(form: CanonicalForm) -> CanonicalForm:
    """Measure a variable with two lower bounds that move with the decision from one of them.

    |z − y| has t ≥ z − y and t ≥ y − z. With t = t' + z − y these are t' ≥ 0 and
    t' ≥ 2(y − z): one row that touches the decision instead of two, and recourse whose blocks
    are diagonal.
    """
    P, A, q, b, c = form.P, form.A.copy(), form.q.copy(), form.b.copy(), form.c.copy()
    n, is_decision = len(q), form.is_decision()
    # Rows that bound one variable by the decision, and do so whatever θ is.
    touched = A != 0
    bounding = (touched[:, ~is_decision].sum(1) == 1) & touched[:, is_decision].any(1)
    bounding &= ~form.equality & (form.cone < 0)
    bounding[form.A_terms.row] = False
    pairs = (touched.sum(0) == 2) & ~touched[~bounding].any(0) & ~(A > 0).any(0)
    movable = (
        form.added & _fixed_columns(form) & pairs & ~is_decision & ~P.any(1) & ~q[:, :-1].any(1)
    )
    for t in np.flatnonzero(movable):
        rows = np.flatnonzero(A[:, t])
        # A_it t + a'z ≤ b_i with A_it < 0; t = t' + (b_i − a'z) / A_it.
        i, j = rows
        move, shift = -A[i] / A[i, t], b[i] / A[i, t]
        move[t] = 0
        c += q[t, -1] * shift
        q[:, -1] += q[t, -1] * move
        A[j] += A[j, t] * move
        b[j] -= A[j, t] * shift
        A[i], b[i] = np.where(np.arange(n) == t, A[i], 0), 0
    return replace(form, A=A, q=q, b=b, c=c)
