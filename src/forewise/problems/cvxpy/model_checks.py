"""What a CVXPY problem must be to become a stochastic program, and what to write where it is not.

Every message quotes the user's expression. May import: exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from forewise.exceptions import InvalidInputError, ModelError

_LONGEST = 200  # characters of an expression that a message shows


def as_leaves(name: str, value: Any, kind: type, needed: bool = True) -> list[Any]:
    """One or several variables or parameters as a list."""
    leaves = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    for leaf in leaves:
        if not isinstance(leaf, kind):
            raise InvalidInputError(
                f"{name} must be a cvxpy.{kind.__name__} or a list of them, but has a "
                f"{type(leaf).__name__}: {quoted(leaf)}"
            )
    if needed and not leaves:
        raise InvalidInputError(f"{name} must name at least one cvxpy.{kind.__name__}")
    ids = [leaf.id for leaf in leaves]
    if len(set(ids)) < len(ids):
        raise InvalidInputError(f"{name} names the same cvxpy.{kind.__name__} twice")
    names = [leaf.name() for leaf in leaves]
    for twice in {word for word in names if names.count(word) > 1}:
        raise InvalidInputError(
            f"{name} has two cvxpy.{kind.__name__} objects named {twice!r}: give each a name of "
            "its own, by which it can be told from the other"
        )
    return leaves


def check_leaves(
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
                f"{_names(problem.variables())}"
            )
    for role, leaves in (("outcome", outcome), ("given", given)):
        for parameter in leaves:
            if parameter.id not in parameters:
                raise ModelError(
                    f"the {role} {parameter.name()} does not appear in the problem: neither the "
                    f"objective {quoted(problem.objective)} nor a constraint has it; its "
                    f"parameters are {_names(problem.parameters()) or 'none'}"
                )
    both = {parameter.id for parameter in outcome} & {parameter.id for parameter in given}
    for parameter in outcome:
        if parameter.id in both:
            raise ModelError(
                f"{parameter.name()} is both outcome and given: what is known when deciding is "
                "given, what is not is an outcome"
            )
    named = {parameter.id for parameter in [*outcome, *given]}
    constants = [parameter for parameter in problem.parameters() if parameter.id not in named]
    for parameter in constants:
        if parameter.value is None:
            raise ModelError(
                f"the parameter {parameter.name()} has neither a role nor a value: name it in "
                "outcome= if it is seen after deciding, in given= if it is known and changes by "
                f"context, or set {parameter.name()}.value if it is a constant"
            )
    return constants


def check_variables(problem: Any, decision: list[Any]) -> None:
    """No complex numbers, and decisions that are what they seem."""
    for variable in problem.variables():
        if variable.is_complex():
            raise ModelError(f"{variable.name()} is complex, but decisions are real numbers")
    for variable in decision:
        special = [a for a in ("symmetric", "diag", "PSD", "NSD", "sparsity", "hermitian")
                   if variable.attributes.get(a)]  # fmt: skip
        if special:
            raise ModelError(
                f"the decision {variable.name()} is declared {special[0]}: declare it without, "
                "and say so with constraints"
            )


def check_integers(problem: Any, is_linear: bool) -> None:
    """Where there are whole numbers, all else is linear."""
    if is_linear:
        return
    for variable in problem.variables():
        for kind in ("integer", "boolean"):
            if not variable.attributes[kind]:
                continue
            bent = next(_bent_parts(problem), problem.objective)
            raise ModelError(
                f"{variable.name()} is {kind}, and {quoted(bent)} is not linear: programs with "
                "whole numbers are solved by HiGHS, which takes linear costs and constraints. "
                "Write it piecewise linear (cp.maximum of tangents, cp.abs, norm1), or leave out "
                f"{kind}=True for the continuous relaxation, and round its decisions"
            )


def check_convex(problem: Any) -> None:
    """The problem is convex by CVXPY's rules."""
    if problem.is_dcp():
        return
    for part in (problem.objective, *problem.constraints):
        if part.is_dcp():
            continue
        culprit = _smallest(part, lambda expression: expression.is_dcp())
        advice = "write it with atoms whose convexity CVXPY can see"
        if _multiplies(culprit) and culprit.variables():
            named = _names(culprit.parameters())
            advice = (
                f"a parameter that may be negative ({named}) makes a curved term point either way: "
                "declare it cp.Parameter(nonneg=True), if it is, or put its square root inside of "
                "the square"
                if named
                else "the product of two variables is not convex: make one of them a parameter"
            )
        elif _is_objective(culprit):
            advice = "what is minimised must be convex, and this is concave or neither"
        elif culprit is part:
            advice = "a constraint is convex <= concave, or affine == affine"
        where = "" if culprit is part else f" in {quoted(part)}"
        raise ModelError(
            f"the problem is not convex by CVXPY's rules (DCP), because of {quoted(culprit)}"
            f"{where}: {advice}"
        )


def check_parametrised(problem: Any, outcome: list[Any]) -> None:
    """The data are affine in the parameters (DPP), so that the problem can be read once."""
    for part in (problem.objective, *problem.constraints):
        if part.is_dcp(dpp=True) or _known_quadratic(part, outcome):
            continue
        culprit = _smallest(part, lambda expression: expression.is_dcp(dpp=True))
        in_question = _names(culprit.parameters())
        if type(culprit).__name__ == "QuadForm":
            raise ModelError(
                f"the matrix of the quadratic form {quoted(culprit)} is a parameter "
                f"({in_question}): a draw of it need not be positive semidefinite, and the cost "
                "not convex; use sum_squares(root @ z) with the matrix's root as the parameter"
            )
        if _multiplies(culprit) and all(factor.parameters() for factor in culprit.args):
            raise ModelError(
                f"two parameters multiply each other in {quoted(culprit)}: make the product one "
                "parameter of its own, or let a variable w with the constraint w == "
                f"{quoted(culprit.args[-1])} stand for one of them"
            )
        raise ModelError(
            f"{quoted(culprit)} in {quoted(part)} is not affine in the parameters {in_question} "
            "(CVXPY's DPP rules): compute it outside of the problem and make it a parameter of its "
            "own"
        )


def check_constraint_kinds(objective: Any, constraints: Any, cp: Any) -> None:
    """Objective and constraints are what CVXPY calls so."""
    if isinstance(objective, cp.Maximize):
        raise ModelError(
            f"costs are minimised, but the objective is {quoted(objective)}: write "
            "cp.Minimize(-(...)) instead"
        )
    if not isinstance(objective, cp.Minimize):
        raise InvalidInputError(
            f"objective must be cp.Minimize(...), but is a {type(objective).__name__}: "
            f"{quoted(objective)}"
        )
    if not isinstance(constraints, list | tuple):
        raise InvalidInputError(
            f"constraints must be a list of CVXPY constraints, but is a "
            f"{type(constraints).__name__}"
        )
    for constraint in constraints:
        if not isinstance(constraint, cp.constraints.constraint.Constraint):
            raise InvalidInputError(
                f"constraints must be CVXPY constraints, but one is a "
                f"{type(constraint).__name__}: {quoted(constraint)}"
            )


def quoted(expression: Any) -> str:
    """The user's expression as it is printed, cut where it is long."""
    text = " ".join(str(expression).split())
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + ' …'}`"


def _names(leaves: Iterable[Any]) -> str:
    return ", ".join(leaf.name() for leaf in leaves)


def _smallest(part: Any, holds: Any) -> Any:
    """The smallest expression for which a rule does not hold, though it does for its parts."""
    for argument in _expressions(part):
        if not holds(argument):
            return _smallest(argument, holds)
    return part


def _expressions(part: Any) -> Iterator[Any]:
    for argument in part.args:
        yield from argument if isinstance(argument, list) else [argument]


def _multiplies(expression: Any) -> bool:
    kinds = {"MulExpression", "multiply", "DivExpression", "kron", "convolve"}
    return type(expression).__name__ in kinds


def _is_objective(part: Any) -> bool:
    return type(part).__name__ in ("Minimize", "Maximize")


def _known_quadratic(part: Any, outcome: list[Any]) -> bool:
    """Whether only matrices of quadratic forms break the rules, and they are given ones."""
    from cvxpy.utilities import scopes

    if not _is_objective(part):
        return False
    with scopes.quad_form_dpp_scope():
        if not part.is_dcp(dpp=True):
            return False
    uncertain = {parameter.id for parameter in outcome}
    return not any(
        parameter.id in uncertain
        for form in _quadratic_forms(part)
        for parameter in form.args[1].parameters()
    )


def _quadratic_forms(part: Any) -> Iterator[Any]:
    for argument in _expressions(part):
        if type(argument).__name__ == "QuadForm":
            yield argument
        yield from _quadratic_forms(argument)


def _bent_parts(problem: Any) -> Iterator[Any]:
    """The smallest expressions that are not piecewise linear."""
    for part in (problem.objective, *problem.constraints):
        expressions = part.args if not _is_objective(part) else [part.expr]
        for expression in expressions:
            if not expression.is_pwl():
                yield _smallest(expression, lambda inner: inner.is_pwl())
