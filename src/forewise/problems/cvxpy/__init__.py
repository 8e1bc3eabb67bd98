"""A problem of the user's own, written in CVXPY: checked, canonicalised, presolved, lifted."""

from forewise.problems.cvxpy.chance import ChanceConstraint, chance
from forewise.problems.cvxpy.problem import CvxpyProblem

__all__ = ["ChanceConstraint", "CvxpyProblem", "chance"]
