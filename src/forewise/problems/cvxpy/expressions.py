"""The user's CVXPY expressions: quoted in messages, searched, and rewritten before reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from forewise.exceptions import MissingDependencyError

_LONGEST = 200  # characters of an expression that a message shows
# Matrices from this size on are tested here for being positive semidefinite.
_LARGE = 20


def import_cvxpy() -> Any:
    """CVXPY, or a message how to get it."""
    try:
        import cvxpy
    except ImportError as error:
        raise MissingDependencyError(
            'CvxpyProblem needs CVXPY, which is not installed: pip install "forewise[cvxpy]"'
        ) from error
    return cvxpy


def kind_of(part: Any) -> str:
    """The name of CVXPY's class."""
    return type(part).__name__


def quoted(expression: Any) -> str:
    """The user's expression as it is printed, cut where it is long."""
    text = " ".join(str(expression).split())
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + ' …'}`"


def names_of(leaves: Iterable[Any]) -> str:
    """The names of variables or parameters, for a message."""
    return ", ".join(leaf.name() for leaf in leaves)


def arguments_of(part: Any) -> Iterator[Any]:
    """The expressions directly inside of an expression, objective or constraint."""
    for argument in part.args:
        yield from argument if isinstance(argument, list) else [argument]


def all_parts(part: Any) -> Iterator[Any]:
    """The part itself and everything inside of it."""
    yield part
    for argument in arguments_of(part):
        yield from all_parts(argument)


def smallest_failing(part: Any, holds: Callable[[Any], bool]) -> Any:
    """The smallest expression for which a rule does not hold, though it does for its parts."""
    for argument in arguments_of(part):
        if not holds(argument):
            return smallest_failing(argument, holds)
    return part


def rewrite(problem: Any, constants: list[Any], cp: Any) -> Any:
    """The problem with constants for the parameters that are, and plain quadratic forms.

    A constant times an outcome is then no product of two parameters.
    """
    fixed = {parameter.id: cp.Constant(parameter.value) for parameter in constants}

    def change(expression: Any) -> Any:
        if isinstance(expression, cp.Parameter):
            return fixed.get(expression.id)
        if kind_of(expression) == "QuadForm" and _is_semidefinite(expression.args[1], cp):
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

    CVXPY's own test, an iteration, is slow for a hundred variables; it decides where this one
    says no.
    """
    if not isinstance(matrix, cp.Constant) or matrix.shape[0] < _LARGE:
        return False
    value = matrix.value
    if sp.issparse(value) or np.iscomplexobj(value) or not np.isfinite(value).all():
        return False
    return bool(value.any() and np.linalg.eigvalsh(value)[0] >= -cp.settings.EIGVAL_TOL)


def _with_plain_forms(objective: Any, cp: Any) -> tuple[Any, list[Any]]:
    """The objective with a variable for each convex expression inside of a quadratic form.

    quad_form(pos(z), Q) is convex by CVXPY's rules, but CVXPY does not rewrite it. Wherever else in
    the objective the expression stands, exceeding its value gains nothing: one variable serves all.
    """
    variables: dict[Any, Any] = {}
    rows: list[Any] = []
    for form in all_parts(objective):
        if kind_of(form) != "QuadForm" or form.args[0].is_affine():
            continue
        inner = form.args[0]
        if not (inner.is_convex() and form.is_incr(0)) or _key(inner) in variables:
            continue
        variable = variables[_key(inner)] = cp.Variable(inner.shape)
        pieces = {"maximum": inner.args, "abs": [inner.args[0], -inner.args[0]]}
        rows += [variable >= piece for piece in pieces.get(kind_of(inner), [inner])]
    if not variables:
        return objective, []
    return _replaced(objective, lambda part: variables.get(_key(part))), rows


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
    return kind_of(part), str(part.get_data()), tuple(_key(a) for a in part.args)
