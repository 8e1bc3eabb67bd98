"""From a CVXPY problem to a `CanonicalForm`, once: the only module that knows CVXPY's insides.

CVXPY rewrites atoms as linear rows and quadratic costs, and keeps every matrix as an affine map
of the parameters. Here these maps are taken apart into plain arrays, with the columns of the
decision and the parameters in the user's order. May import: exceptions, its sibling `canonical`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forewise.exceptions import MissingDependencyError, ModelError
from forewise.problems.canonical import Array, CanonicalForm, Terms

# From so many parameters on, CVXPY's own choice of backend is another one.
_MANY_PARAMETERS = 1000


def import_cvxpy() -> Any:
    """CVXPY, or a message how to get it."""
    try:
        import cvxpy
    except ImportError as error:
        raise MissingDependencyError(
            'CvxpyProblem needs CVXPY, which is not installed: pip install "forewise[cvxpy]"'
        ) from error
    return cvxpy


def read(problem: Any, decision: list[Any], outcome: list[Any], given: list[Any]) -> CanonicalForm:
    """The canonical form of a checked CVXPY problem.

    Parameters
    ----------
    problem : cvxpy.Problem
        Convex, DPP, without integers; its parameters are those below.
    decision : list of cvxpy.Variable
    outcome, given : list of cvxpy.Parameter

    Raises
    ------
    ModelError
        If it takes cones that a linear or quadratic program does not have.
    """
    stuffed, columns_of, lowered = _stuffed(problem)
    _require_linear_rows(stuffed)
    n, m = stuffed.x.size, stuffed.constr_size
    places, n_parameters = _parameter_places(stuffed, [*outcome, *given], lowered)
    P, P_terms = _matrix(stuffed.P, (n, n), places)
    objective, objective_terms = _matrix(stuffed.q, (n + 1, 1), places)
    rows, row_terms = _matrix(stuffed.A, (m, n + 1), places)
    q = _vector(objective, objective_terms, 0, n_parameters)
    # CVXPY's rows say A x + b = 0 and A x + b ≥ 0.
    equality = np.concatenate(
        [np.full(c.size, _kind(c) == "Zero", dtype=bool) for c in stuffed.constraints]
        or [np.zeros(0, dtype=bool)]
    )
    inner = row_terms.column < n
    A_terms = row_terms.where(inner)
    columns = np.concatenate([columns_of(variable) for variable in decision])
    added = np.ones(n, dtype=bool)
    for variable in problem.variables():
        added[columns_of(variable)] = False
    return CanonicalForm(
        n_outcomes=sum(parameter.size for parameter in outcome),
        P=(P + P.T) / 2,
        P_terms=P_terms,
        q=q[:n],
        c=q[n],
        alpha=np.zeros((0, n_parameters + 1)),
        beta=np.zeros((0, n_parameters + 1)),
        A=-rows[:, :n],
        A_terms=Terms(A_terms.row, A_terms.column, A_terms.parameter, -A_terms.coefficient),
        b=_vector(rows[:, n:], row_terms.where(~inner), n, n_parameters),
        equality=equality,
        decision=columns,
        added=added,
    )


def _stuffed(problem: Any) -> tuple[Any, Any, dict[int, Any]]:
    """CVXPY's parametrised program, where a variable's columns are, and reduced parameters."""
    from cvxpy.reductions.cvx_attr2constr import CvxAttr2Constr
    from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ConeMatrixStuffing
    from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone
    from cvxpy.reductions.eliminate_zero_sized import EliminateZeroSized

    many = sum(parameter.size for parameter in problem.parameters()) >= _MANY_PARAMETERS
    attributes = CvxAttr2Constr(reduce_bounds=True)
    # The chain of CVXPY's quadratic solvers, without a solver at its end.
    steps = (
        Dcp2Cone(quad_obj=True),
        attributes,
        EliminateZeroSized(),
        ConeMatrixStuffing(quad_obj=True, canon_backend="COO" if many else None),
    )
    reduced = problem
    for step in steps:
        reduced, _ = step.apply(reduced)
    renamed = attributes.var_id_map
    sizes = {variable.id: variable.size for variable in reduced.variables}

    def columns_of(variable: Any) -> Array:
        (name,) = renamed.get(variable.id, [variable.id])
        if name not in sizes:  # it has neither a cost nor a row
            return np.zeros(0, dtype=np.int64)
        return reduced.var_id_to_col[name] + np.arange(sizes[name])

    return reduced, columns_of, attributes.param_id_map


def _require_linear_rows(stuffed: Any) -> None:
    kinds = {"SOC": "a second-order", "ExpCone": "an exponential", "PSD": "a matrix"}
    for constraint in stuffed.constraints:
        kind = _kind(constraint)
        if kind not in ("Zero", "NonNeg"):
            raise ModelError(
                f"this problem needs {kinds.get(kind, 'another')} cone, and forewise takes linear "
                "and quadratic programs only, as yet: quadratic terms may stand in the objective, "
                "added up, but not in constraints or inside other functions; norms must be norm1 "
                "or norm_inf"
            )


def _kind(constraint: Any) -> str:
    return type(constraint).__name__


def _parameter_places(
    stuffed: Any, parameters: list[Any], lowered: dict[int, Any]
) -> tuple[Array, int]:
    """Place in θ of each of CVXPY's parameter columns; −1 for the constant, the last.

    CVXPY flattens a parameter column by column, θ has it row by row; symmetric parameters are
    their upper triangle to CVXPY.
    """
    from cvxpy.reductions.cvx_attr2constr import lower_value

    places = np.full(stuffed.total_param_size + 1, -1, dtype=np.int64)
    start = 0
    for parameter in parameters:
        order = start + np.arange(parameter.size).reshape(parameter.shape)
        start += parameter.size
        names = lowered.get(parameter.id)
        if names is not None:
            order = lower_value(parameter, order)
        name = parameter.id if names is None else names[0]
        if name in stuffed.param_id_to_col:
            first = stuffed.param_id_to_col[name]
            places[first : first + order.size] = order.flatten(order="F")
    return places, start


def _matrix(tensor: Any, shape: tuple[int, int], places: Array) -> tuple[Array, Terms]:
    """A matrix's constant part and its terms, from CVXPY's (entries, parameters) tensor."""
    entries = sp.coo_array(tensor)
    entry, source = (np.asarray(part, dtype=np.int64) for part in entries.coords)
    row, column = entry % shape[0], entry // shape[0]
    place, value = places[source], np.asarray(entries.data, dtype=np.float64)
    fixed = place < 0
    constant = np.zeros(shape)
    np.add.at(constant, (row[fixed], column[fixed]), value[fixed])
    varying = ~fixed & (value != 0)
    return constant, Terms(row[varying], column[varying], place[varying], value[varying])


def _vector(constant: Array, terms: Terms, column: int, n_parameters: int) -> Array:
    """One column of a matrix as a dense affine map ``(rows, n_parameters + 1)``."""
    vector = np.zeros((len(constant), n_parameters + 1))
    vector[:, -1] = constant[:, 0]
    np.add.at(vector, (terms.row, terms.parameter), terms.coefficient)
    assert (terms.column == column).all()
    return vector
