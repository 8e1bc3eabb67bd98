"""Check a CVXPY problem before it is read: every message quotes the user's expression."""

from __future__ import annotations

from typing import Any, NamedTuple

from forewise.exceptions import InvalidInputError, ModelError
from forewise.problems.cvxpy.chance import Chance, ChanceConstraint, with_thresholds
from forewise.problems.cvxpy.expressions import (
    all_parts,
    import_cvxpy,
    kind_of,
    names_of,
    quoted,
    rewrite,
    smallest_failing,
)  # fmt: skip

_SPECIAL = ("symmetric", "diag", "PSD", "NSD", "sparsity", "hermitian")
_PRODUCTS = ("MulExpression", "multiply", "DivExpression", "kron", "convolve")


class CheckedModel(NamedTuple):
    """A convex CVXPY problem (DCP, DPP) without constant parameters, and its leaves by role."""

    problem: Any
    decision: list[Any]
    outcome: list[Any]
    given: list[Any]
    chances: list[Chance]


def check(
    objective: Any, constraints: Any, decision: Any, outcome: Any, given: Any
) -> CheckedModel:
    """The user's problem, if it can become a stochastic program.

    Raises an `InvalidInputError` for wrong arguments, and a `ModelError` that says what to write
    instead for problems that cannot be used.
    """
    cp = import_cvxpy()
    _check_kinds(objective, constraints, cp)
    decisions = _as_leaves("decision", decision, cp.Variable)
    outcomes = _as_leaves("outcome", outcome, cp.Parameter)
    known = _as_leaves("given", given, cp.Parameter, needed=False)
    rows, chances = with_thresholds(constraints, decisions, outcomes, cp)
    problem = cp.Problem(objective, rows)
    constants = _check_roles(problem, decisions, outcomes, known)
    _check_variables(problem, decisions)
    problem = rewrite(problem, constants, cp)
    _check_convex(problem)
    _check_parametrised(problem, outcomes)
    return CheckedModel(problem, decisions, outcomes, known, chances)


def _check_kinds(objective: Any, constraints: Any, cp: Any) -> None:
    """Objective and constraints are what CVXPY calls so."""
    if isinstance(objective, cp.Maximize):
        raise ModelError(
            f"costs are minimised, but the objective is {quoted(objective)}: write "
            "cp.Minimize(-(...)) instead"
        )
    if not isinstance(objective, cp.Minimize):
        raise InvalidInputError(
            f"objective must be cp.Minimize(...), but is a {kind_of(objective)}: "
            f"{quoted(objective)}"
        )
    if not isinstance(constraints, list | tuple):
        raise InvalidInputError(
            f"constraints must be a list of CVXPY constraints, but is a {kind_of(constraints)}"
        )
    for constraint in constraints:
        if not isinstance(constraint, ChanceConstraint | cp.constraints.constraint.Constraint):
            raise InvalidInputError(
                f"constraints must be CVXPY constraints, but one is a {kind_of(constraint)}: "
                f"{quoted(constraint)}"
            )


def _as_leaves(name: str, value: Any, kind: type, needed: bool = True) -> list[Any]:
    """One or several variables or parameters as a list."""
    leaves = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    for leaf in leaves:
        if not isinstance(leaf, kind):
            raise InvalidInputError(
                f"{name} must be a cvxpy.{kind.__name__} or a list of them, but has a "
                f"{kind_of(leaf)}: {quoted(leaf)}"
            )
    if needed and not leaves:
        raise InvalidInputError(f"{name} must name at least one cvxpy.{kind.__name__}")
    if len({leaf.id for leaf in leaves}) < len(leaves):
        raise InvalidInputError(f"{name} names the same cvxpy.{kind.__name__} twice")
    names = [leaf.name() for leaf in leaves]
    for twice in {word for word in names if names.count(word) > 1}:
        raise InvalidInputError(
            f"{name} has two cvxpy.{kind.__name__} objects named {twice!r}: give each a name of "
            "its own"
        )
    return leaves


def _check_roles(
    problem: Any, decision: list[Any], outcome: list[Any], given: list[Any]
) -> list[Any]:
    """Every leaf is in the problem and has one role; returns the parameters that are constants."""
    variables = {variable.id for variable in problem.variables()}
    parameters = {parameter.id for parameter in problem.parameters()}
    for variable in decision:
        if variable.id not in variables:
            raise ModelError(
                f"the decision {variable.name()} is not in the problem: neither the objective "
                f"{quoted(problem.objective)} nor a constraint has it; its variables are "
                f"{names_of(problem.variables())}"
            )
    for role, leaves in (("outcome", outcome), ("given", given)):
        for parameter in leaves:
            if parameter.id not in parameters:
                raise ModelError(
                    f"the {role} {parameter.name()} does not appear in the problem: neither the "
                    f"objective {quoted(problem.objective)} nor a constraint has it; its "
                    f"parameters are {names_of(problem.parameters()) or 'none'}"
                )
    known = {parameter.id for parameter in given}
    for parameter in outcome:
        if parameter.id in known:
            raise ModelError(
                f"{parameter.name()} is both outcome and given: what is known when deciding is "
                "given, what is not is an outcome"
            )
    named = known | {parameter.id for parameter in outcome}
    constants = [parameter for parameter in problem.parameters() if parameter.id not in named]
    for parameter in constants:
        if parameter.value is None:
            raise ModelError(
                f"the parameter {parameter.name()} has neither a role nor a value: name it in "
                "outcome= if it is seen after deciding, in given= if it is known and changes by "
                f"context, or set {parameter.name()}.value if it is a constant"
            )
    return constants


def _check_variables(problem: Any, decision: list[Any]) -> None:
    """No complex numbers, and decisions without structure that would hide entries."""
    for variable in problem.variables():
        if variable.is_complex():
            raise ModelError(f"{variable.name()} is complex, but decisions are real numbers")
    for variable in decision:
        special = [a for a in _SPECIAL if variable.attributes.get(a)]
        if special:
            raise ModelError(
                f"the decision {variable.name()} is declared {special[0]}: declare it without, "
                "and say so with constraints"
            )


def _check_convex(problem: Any) -> None:
    """The problem is convex by CVXPY's rules."""
    for part in (problem.objective, *problem.constraints):
        if part.is_dcp():
            continue
        culprit = smallest_failing(part, lambda expression: expression.is_dcp())
        advice = "write it with atoms whose convexity CVXPY can see"
        if kind_of(culprit) in _PRODUCTS and culprit.variables():
            named = names_of(culprit.parameters())
            advice = (
                f"a parameter that may be negative ({named}) makes a curved term point either way: "
                "declare it cp.Parameter(nonneg=True), if it is, or put its square root inside of "
                "the square"
                if named
                else "the product of two variables is not convex: make one of them a parameter"
            )
        elif kind_of(culprit) == "Minimize":
            advice = "what is minimised must be convex, and this is concave or neither"
        elif culprit is part:
            advice = "a constraint is convex <= concave, or affine == affine"
        where = "" if culprit is part else f" in {quoted(part)}"
        raise ModelError(
            f"the problem is not convex by CVXPY's rules (DCP), because of {quoted(culprit)}"
            f"{where}: {advice}"
        )


def _check_parametrised(problem: Any, outcome: list[Any]) -> None:
    """The data are affine in the parameters (DPP), so that the problem can be read once."""
    for part in (problem.objective, *problem.constraints):
        if part.is_dcp(dpp=True) or _has_given_forms_only(part, outcome):
            continue
        culprit = smallest_failing(part, lambda expression: expression.is_dcp(dpp=True))
        parameters = names_of(culprit.parameters())
        if kind_of(culprit) == "QuadForm":
            raise ModelError(
                f"the matrix of the quadratic form {quoted(culprit)} is a parameter "
                f"({parameters}): a draw of it need not be positive semidefinite, and the cost "
                "not convex; use sum_squares(root @ z) with the matrix's root as the parameter"
            )
        if kind_of(culprit) in _PRODUCTS and all(factor.parameters() for factor in culprit.args):
            raise ModelError(
                f"two parameters multiply each other in {quoted(culprit)}: make the product one "
                "parameter of its own, or let a variable w with the constraint w == "
                f"{quoted(culprit.args[-1])} stand for one of them"
            )
        raise ModelError(
            f"{quoted(culprit)} in {quoted(part)} is not affine in the parameters {parameters} "
            "(CVXPY's DPP rules): compute it outside of the problem and make it a parameter of its "
            "own"
        )


def _has_given_forms_only(part: Any, outcome: list[Any]) -> bool:
    """Whether only matrices of quadratic forms break the rules, and they are given ones."""
    from cvxpy.utilities import scopes

    if kind_of(part) != "Minimize":
        return False
    with scopes.quad_form_dpp_scope():
        if not part.is_dcp(dpp=True):
            return False
    uncertain = {parameter.id for parameter in outcome}
    forms = (inner for inner in all_parts(part) if kind_of(inner) == "QuadForm")
    return not any(p.id in uncertain for form in forms for p in form.args[1].parameters())
