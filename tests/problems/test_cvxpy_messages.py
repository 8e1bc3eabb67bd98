"""What cannot be done says why when the problem is made, and quotes the user's expression."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import forewise as fw

z, x = cp.Variable(2, name="z"), cp.Variable(2, name="x")
y, price = cp.Parameter(2, name="y"), cp.Parameter(name="price")
scale = cp.Parameter(nonneg=True, name="scale")
matrix = cp.Parameter((2, 2), PSD=True, name="matrix")
count, yes = cp.Variable(2, integer=True, name="count"), cp.Variable(2, boolean=True, name="yes")


def make(objective, constraints=(), *, decision=z, outcome=y, given=None):
    if not isinstance(objective, cp.Minimize | cp.Maximize):
        objective = cp.Minimize(objective)
    return fw.CvxpyProblem(
        objective, list(constraints), decision=decision, outcome=outcome, given=given
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            lambda: make(cp.sum(cp.sqrt(z)) + y[0]),
            r"not convex .*because of `minimize Sum.*0.5.*must be convex",
        ),
        (lambda: make(z[0] * z[1] + y[0]), r"`z\[0\] \* z\[1\]` in .*product of two variables"),
        (lambda: make(y @ z, [cp.sum_squares(z) >= 1]), r"1.0 <= quad_over_lin.*convex <= concave"),
        (
            lambda: make(y[0] * cp.sum_squares(z)),
            r"parameter that may be negative \(y\).*nonneg=True",
        ),
        (
            lambda: make(scale * cp.sum_squares(z), outcome=scale),
            "outcome scale scales a quadratic term.*square root",
        ),
        (
            lambda: make(cp.quad_form(z, matrix), outcome=matrix),
            r"`QuadForm\(z, matrix\)` is a parameter \(matrix\).*root",
        ),
        (
            lambda: make(price * (y @ z), given=price),
            r"two parameters multiply each other in `price \* y @ z`.*w == `y @ z`",
        ),
        (
            lambda: make(cp.exp(price) * cp.sum(z) + y @ z, given=price),
            r"`exp\(price\).*not affine in the parameters price",
        ),
        (
            lambda: make(y @ z, decision=x),
            "decision x is not in the problem.*`minimize y @ z`.* its variables are z",
        ),
        (
            lambda: make(cp.sum(z)),
            "outcome y does not appear in the problem.*`minimize Sum.*parameters are none",
        ),
        (lambda: make(y @ z, given=price), "given price does not appear .* its parameters are y"),
        (lambda: make(y @ z + price), "price has neither a role nor a value: name it in outcome="),
        (lambda: make(y @ z, given=y), "y is both outcome and given"),
        (
            lambda: make(y @ count + cp.sum_squares(count - y), decision=count),
            r"count is integer, and `quad_over_lin\(count .* is not linear: .*HiGHS.*relaxation",
        ),
        (
            lambda: make(y @ z + cp.sum(yes), [cp.norm(z) <= cp.sum(yes)]),
            r"yes is boolean, and `\w+\(z, 2\)` is not linear: .*leave out boolean=True",
        ),
        (
            lambda: make(y @ z + cp.lambda_max(cp.bmat([[z[0], z[1]], [z[1], z[0]]]))),
            "needs positive semidefinite matrices .*bound the matrix by norms",
        ),
        (
            lambda: make(cp.sum(cp.power(z - y, 1.7, approx=False))),
            "needs power cones: leave out approx=False",
        ),
        (lambda: make(y @ z, [z == y]), "ties the decision alone to the outcome"),
        (
            lambda: make(cp.Maximize(y @ z)),
            r"costs are minimised.*`maximize y @ z`.*cp.Minimize\(-",
        ),
    ],
)
def test_models_that_cannot_be_used(bad, message):
    with pytest.raises(fw.exceptions.ModelError, match=message):
        bad()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            lambda: fw.CvxpyProblem(y @ z, [], decision=z, outcome=y),
            "objective must be cp.Minimize.*`y @ z`",
        ),
        (
            lambda: fw.CvxpyProblem(cp.Minimize(y @ z), z >= 0, decision=z, outcome=y),
            "constraints must be a list",
        ),
        (lambda: make(y @ z, [True]), "must be CVXPY constraints, but one is a bool: `True`"),
        (
            lambda: make(y @ z, decision=y),
            "decision must be a cvxpy.Variable .* has a Parameter: `y`",
        ),
        (lambda: make(y @ z, outcome="y"), "outcome must be a cvxpy.Parameter .* has a str: `y`"),
        (lambda: make(y @ z, decision=[]), "decision must name at least one"),
        (lambda: make(y @ z, decision=[z, z]), "decision names the same"),
        (
            lambda: make(
                y @ (z + cp.Variable(2, name="z")), decision=[z, cp.Variable(2, name="z")]
            ),
            "named 'z'",
        ),
        (lambda: make(y @ cp.diag(s), decision=s), "decision s is declared symmetric"),
    ],
)
def test_arguments_that_are_something_else(bad, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        bad()


s = cp.Variable((2, 2), symmetric=True, name="s")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            lambda p: p.cost(np.ones((1, 2)), np.ones((1, 2))),
            r"needs what is given .*\(price\).*problem.bound",
        ),
        (lambda p: fw.solve(p, fw.Scenarios(np.ones((1, 1, 2)))), "needs what is given"),
        (
            lambda p: p.bound(np.ones(3)).cost(np.ones((2, 2)), np.ones((2, 2))),
            "given has 3 rows, but there are 2",
        ),
        (
            lambda p: p.bound(np.ones((3, 2))),
            r"given must have shape \(n_contexts, 1\), or come by name",
        ),
        (
            lambda p: p.bound({"cost": np.ones(3)}),
            "given must have values for price, but has them for cost",
        ),
        (lambda p: p.bound({"price": np.ones((3, 2))}), r"given\['price'\] must have shape"),
        (lambda p: p[:2], "has rows once it is bound"),
        (lambda p: p.split_decision(np.ones((1, 3))), "with 2 decisions, but has shape"),
        (lambda p: p.join_decision({"z": np.ones((1, 3))}), r"decision\['z'\] must have shape"),
        (lambda p: fw.Newsvendor(1.0, 1.0).bound([1.0]), "given must be None for a Newsvendor"),
        (lambda p: make(y @ z).bound([1.0]), "given must be None for a CvxpyProblem without"),
    ],
)
def test_what_is_given_is_checked(bad, message):
    problem = make(y @ z + cp.sum_squares(z), [z[0] <= price], given=price)
    with pytest.raises(fw.InvalidInputError, match=message):
        bad(problem)
