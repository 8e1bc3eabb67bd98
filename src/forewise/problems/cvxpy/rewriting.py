"""Small changes to a user's CVXPY problem before it is read.

May import: nothing of forewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

# Matrices from this size on are tested here for being positive semidefinite.
_LARGE = 20


def rewritten(problem: Any, constants: list[Any], cp: Any) -> Any:
    """The problem with constants for the parameters that are, and plain quadratic forms.

    A constant times an outcome is then no product of two parameters.
    """
    fixed = {parameter.id: cp.Constant(parameter.value) for parameter in constants}

    def change(expression: Any) -> Any:
        if isinstance(expression, cp.Parameter):
            return fixed.get(expression.id)
        if type(expression).__name__ == "QuadForm" and _is_semidefinite(expression.args[1], cp):
            inner, matrix = expression.args
            return expression.copy([_replaced(inner, change), cp.psd_wrap(matrix)])
        return None

    objective, *constraints = (
        _replaced(part, change) for part in (problem.objective, *problem.constraints)
    )
    objective, more = _with_plain_forms(objective, cp)
    return cp.Problem(objective, [*constraints, *more])


def _is_semidefinite(matrix: Any, cp: Any) -> bool:
    """Whether a large constant matrix is positive semidefinite, and not zero.

    CVXPY's own test, an iteration, takes longer than all else for a hundred variables. It has
    the last word where this one says no.
    """
    if not isinstance(matrix, cp.Constant) or matrix.shape[0] < _LARGE:
        return False
    value = matrix.value
    if sp.issparse(value) or np.iscomplexobj(value) or not np.isfinite(value).all():
        return False
    return bool(value.any() and np.linalg.eigvalsh(value)[0] >= -cp.settings.EIGVAL_TOL)


def _with_plain_forms(objective: Any, cp: Any) -> tuple[Any, list[Any]]:
    """The objective with a variable for each expression inside of a quadratic form that is bent.

    CVXPY rewrites the parts of every atom but this one: quad_form(pos(z), Q) is convex by its
    rules, but stops it. Wherever else in the objective the expression stands, its value may be
    exceeded without gain, so that one variable serves all.
    """
    stands_for: dict[Any, Any] = {}
    rows: list[Any] = []
    for form in _all_parts(objective):
        if type(form).__name__ != "QuadForm" or form.args[0].is_affine():
            continue
        bent = form.args[0]
        if not (bent.is_convex() and form.is_incr(0)) or _key(bent) in stands_for:
            continue
        variable = cp.Variable(bent.shape)
        stands_for[_key(bent)] = variable
        pieces = {"maximum": bent.args, "abs": [bent.args[0], -bent.args[0]]}
        rows += [variable >= piece for piece in pieces.get(type(bent).__name__, [bent])]
    if not stands_for:
        return objective, []
    return _replaced(objective, lambda part: stands_for.get(_key(part))), rows


def _replaced(part: Any, change: Callable[[Any], Any]) -> Any:
    """An expression, objective or constraint with `change(part)` for its parts, where not None."""
    if isinstance(part, list):
        return [_replaced(item, change) for item in part]
    changed = change(part)
    if changed is not None:
        return changed
    arguments = [_replaced(argument, change) for argument in part.args]
    if all(new is old for new, old in zip(arguments, part.args, strict=True)):
        return part
    return part.copy(arguments)


def _all_parts(part: Any) -> Iterator[Any]:
    yield part
    for argument in part.args:
        for inner in argument if isinstance(argument, list) else [argument]:
            yield from _all_parts(inner)


def _key(part: Any) -> Any:
    """Equal for two expressions that were written the same."""
    if isinstance(part, list):
        return tuple(_key(item) for item in part)
    if not part.args:
        if part.is_constant() and not part.parameters():
            value = part.value
            value = np.asarray(value.toarray() if sp.issparse(value) else value)
            return value.shape, value.tobytes()
        return part.id
    return type(part).__name__, str(part.get_data()), tuple(_key(a) for a in part.args)
