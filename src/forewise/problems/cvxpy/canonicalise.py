"""From a CVXPY problem to a `CanonicalForm`: the only module that knows CVXPY's insides.

CVXPY rewrites atoms as rows, linear or in cones, and quadratic costs, and keeps every matrix as an
affine map of the parameters. Here these maps become plain arrays, with the columns of the decision
and the parameters in the user's order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from forewise.exceptions import ModelError
from forewise.problems.cones import ConeKind
from forewise.problems.cvxpy.check import CheckedModel
from forewise.problems.cvxpy.expressions import kind_of, quoted, smallest_failing
from forewise.problems.cvxpy.form import CONE_KINDS, Array, CanonicalForm, Terms

# From so many parameters on, CVXPY's own choice of backend is another one.
_MANY_PARAMETERS = 1000
_CONES = {"SOC": ConeKind.SECOND_ORDER, "ExpCone": ConeKind.EXPONENTIAL}


def canonicalise(model: CheckedModel) -> CanonicalForm:
    """The canonical form of a checked CVXPY problem.

    Raises a `ModelError` where only the arrays tell that it cannot be used: unknown cones, an
    outcome in a quadratic term, chance constraints with cones, integers in what is not linear.
    """
    form = _read(model)
    _require_linear_outcomes(form, model.outcome)
    if len(form.level) and (len(form.cone_kind) or form.integer.any()):
        raise ModelError(
            "chance(...) can only stand in linear and quadratic problems, but this one has cones "
            "or integers: leave them out, or let the constraint hold in every scenario"
        )
    if not form.is_linear:
        _refuse_integers(model.problem)
    return form


def _require_linear_outcomes(form: CanonicalForm, outcomes: list[Any]) -> None:
    """No outcome is in a quadratic term."""
    owner = [outcome for outcome in outcomes for _ in range(outcome.size)]
    places = form.P_terms.parameter[form.is_outcome(form.P_terms.parameter)]
    if len(places):
        raise ModelError(
            f"the outcome {owner[places[0]].name()} scales a quadratic term: a negative draw of it "
            "would turn the term over. Put its square root inside of the square, as in "
            "sum_squares(root * z), or multiply something linear"
        )


def _refuse_integers(problem: Any) -> None:
    for variable in problem.variables():
        for kind in ("integer", "boolean"):
            if variable.attributes[kind]:
                expressions = [problem.objective.expr]
                expressions += [inner for row in problem.constraints for inner in row.args]
                curved = [e for e in expressions if not e.is_pwl()] or [problem.objective]
                culprit = smallest_failing(curved[0], lambda inner: inner.is_pwl())
                raise ModelError(
                    f"{variable.name()} is {kind}, and {quoted(culprit)} is not linear: programs "
                    "with integers are solved by HiGHS, which takes linear costs and constraints. "
                    "Write it piecewise linear (cp.maximum of tangents, cp.abs, norm1), or leave "
                    f"out {kind}=True for the continuous relaxation, and round its decisions"
                )


def _read(model: CheckedModel) -> CanonicalForm:
    problem, decision, outcome, given, chances = model
    stuffed, columns_of, lowered = _stuffed(problem)
    _require_known_cones(stuffed)
    n, m = stuffed.x.size, stuffed.constr_size
    places, n_parameters = _parameter_places(stuffed, [*outcome, *given], lowered)
    P, P_terms = _matrix(stuffed.P, (n, n), places)
    objective, objective_terms = _matrix(stuffed.q, (n + 1, 1), places)
    rows, row_terms = _matrix(stuffed.A, (m, n + 1), places)
    q = _vector(objective, objective_terms, 0, n_parameters)
    # CVXPY's rows say A x + b = 0, A x + b ≥ 0 and A x + b ∈ K.
    equality = [np.full(c.size, kind_of(c) == "Zero", dtype=bool) for c in stuffed.constraints]
    order, cone, cone_kind = _cones(stuffed)
    rows, row_terms = rows[order], row_terms.moved(np.argsort(order), np.arange(n + 1))
    integer = np.zeros(n, dtype=bool)
    for place in (*stuffed.x.boolean_idx, *stuffed.x.integer_idx):
        integer[place] = True
    inner = row_terms.column < n
    A_terms = row_terms.where(inner)
    # CVXPY has a variable's entries column by column, decisions have them row by row.
    columns = [columns_of(v).reshape(v.shape, order="F").reshape(-1) for v in decision]
    added = np.ones(n, dtype=bool)
    for variable in problem.variables():
        added[columns_of(variable)] = False
    form = CanonicalForm(
        n_outcomes=sum(parameter.size for parameter in outcome),
        P=(P + P.T) / 2 if P.any() else P,
        P_terms=P_terms,
        q=q[:n],
        c=q[n],
        alpha=np.zeros((0, n_parameters + 1)),
        beta=np.zeros((0, n_parameters + 1)),
        A=-rows[:, :n],
        A_terms=replace(A_terms, coefficient=-A_terms.coefficient),
        b=_vector(rows[:, n:], row_terms.where(~inner), n, n_parameters),
        equality=np.concatenate([np.zeros(0, dtype=bool), *equality]),
        cone=cone,
        cone_kind=cone_kind,
        decision=np.concatenate(columns),
        added=added,
        integer=integer,
        threshold=np.array([columns_of(c.threshold)[0] for c in chances], dtype=np.int64),
        excess=np.array([columns_of(c.excess)[0] for c in chances], dtype=np.int64),
        level=np.array([c.level for c in chances]),
    )
    return _with_unit_bounds(form, [int(yes) for (yes,) in stuffed.x.boolean_idx])


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


def _require_known_cones(stuffed: Any) -> None:
    advice = {
        "PSD": "positive semidefinite matrices (lambda_max, sigma_max, matrix_frac, PSD=True): "
        "bound the matrix by norms of its entries, or fix it and make it a parameter",
        "PowCone3D": "power cones: leave out approx=False, so that CVXPY writes the power with "
        "second-order cones",
    }
    for constraint in stuffed.constraints:
        kind = kind_of(constraint)
        if kind not in ("Zero", "NonNeg", *_CONES):
            raise ModelError(
                "forewise takes linear rows, second-order cones and exponential cones, and this "
                f"problem needs {advice.get(kind, 'another cone (' + kind + ')')}"
            )


def _cones(stuffed: Any) -> tuple[Array, Array, Array]:
    """The order that puts each cone's rows side by side, each row's cone, and the cones' kinds.

    One constraint of CVXPY may be several cones: it then has the first entries of all of them,
    and the others behind.
    """
    order: list[Array] = []
    cone: list[Array] = []
    kinds: list[int] = []
    start = 0
    for constraint in stuffed.constraints:
        rows = start + np.arange(constraint.size)
        start += constraint.size
        kind = _CONES.get(kind_of(constraint))
        if kind is None:
            order.append(rows)
            cone.append(np.full(len(rows), -1))
            continue
        count = constraint.args[0].size
        if kind is ConeKind.SECOND_ORDER:
            parts = [rows[:count, None], rows[count:].reshape(count, -1)]
        else:
            parts = [rows.reshape(3, count).T]
        rows = np.concatenate(parts, axis=1)
        order.append(rows.reshape(-1))
        cone.append(np.repeat(len(kinds) + np.arange(count), rows.shape[1]))
        kinds += [CONE_KINDS.index(kind)] * count
    nothing = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([nothing, *order]),
        np.concatenate([nothing, *cone]),
        np.array(kinds, dtype=np.int64),
    )


def _with_unit_bounds(form: CanonicalForm, columns: list[int]) -> CanonicalForm:
    """The form with 0 ≤ x ≤ 1 for some columns, which CVXPY leaves to solvers."""
    if not columns:
        return form
    unit = np.zeros((len(columns), len(form.q)))
    unit[np.arange(len(columns)), columns] = 1
    bounds = np.zeros((2 * len(columns), form.b.shape[1]))
    bounds[: len(columns), -1] = 1
    return replace(
        form,
        A=np.concatenate([form.A, unit, -unit]),
        b=np.concatenate([form.b, bounds]),
        equality=np.concatenate([form.equality, np.zeros(len(bounds), dtype=bool)]),
        cone=np.concatenate([form.cone, np.full(len(bounds), -1)]),
    )


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
