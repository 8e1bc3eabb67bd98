"""Constraints that must hold with a probability, by their inner approximation with CVaR.

P(g(z, u, y) ≤ 0) ≥ level holds wherever CVaR_level(g) ≤ 0, which is convex:

    t + Σ_j w_j v_j / (1 − level) ≤ 0,   g_j − t ≤ v_j,   0 ≤ v_j

`with_thresholds` writes the second row with two variables of CVXPY, the form keeps their columns,
and `with_chances` adds the other two to each program. The first row couples all scenarios, so that
the v_j become first-stage variables: time grows with the cube of the number of scenarios.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from forewise.exceptions import InvalidInputError, ModelError
from forewise.problems.cvxpy.expressions import kind_of, quoted
from forewise.problems.cvxpy.form import CanonicalForm
from forewise.problems.programs import ScenarioProgram, joined

# Scenarios of weight zero would leave their v_j without an upper bound.
_LEAST_WEIGHT = 1e-9


@dataclass(frozen=True)
class ChanceConstraint:
    """A CVXPY constraint and the probability with which it is to hold; made by `chance`."""

    constraint: Any
    level: float


class Chance(NamedTuple):
    """The two variables of a chance constraint, and its level.

    Variables of CVXPY, and later their places in a program, in first stage and recourse.
    """

    threshold: Any
    excess: Any
    level: float


def chance(constraint: Any, level: float) -> ChanceConstraint:
    """A constraint that is to hold with a probability, for the list of a `CvxpyProblem`.

    It is replaced by a stronger, convex one: the mean of the worst share 1 − level of its
    violations must not be positive. A vector of inequalities must hold jointly.

    Parameters
    ----------
    constraint : CVXPY inequality
        Such as ``demand <= order``; an outcome must be in it, or recourse.
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import forewise as fw
    >>> order, demand = cp.Variable(), cp.Parameter()
    >>> enough = fw.chance(demand <= order, 0.75)
    >>> problem = fw.CvxpyProblem(cp.Minimize(order), [enough], decision=order, outcome=demand)
    >>> scenarios = fw.Scenarios([[[8.0], [9.0], [10.0], [11.0]]])
    >>> bool(fw.solve(problem, scenarios).decision >= 10.0)
    True
    """
    if not isinstance(level, float | int) or not 0 < level < 1:
        raise InvalidInputError(f"level must be between 0 and 1, but is {level!r}")
    if kind_of(constraint) != "Inequality":
        raise ModelError(
            f"chance takes an inequality such as demand <= order, but got {quoted(constraint)}: an "
            "equation holds for one outcome at most"
        )
    return ChanceConstraint(constraint, float(level))


def with_thresholds(
    constraints: list[Any], decisions: list[Any], outcomes: list[Any], cp: Any
) -> tuple[list[Any], list[Chance]]:
    """The constraints with rows g ≤ t + v for the chance constraints, and their t and v."""
    uncertain, decided = ({leaf.id for leaf in leaves} for leaves in (outcomes, decisions))
    rows, chances = [], []
    for constraint in constraints:
        if not isinstance(constraint, ChanceConstraint):
            rows.append(constraint)
            continue
        inner = constraint.constraint
        has_outcome = uncertain & {parameter.id for parameter in inner.parameters()}
        if not has_outcome and {variable.id for variable in inner.variables()} <= decided:
            raise ModelError(
                f"neither an outcome nor recourse is in {quoted(inner)}, which therefore holds "
                "always or never: leave out chance(...)"
            )
        threshold, excess = cp.Variable(), cp.Variable()
        rows.append(inner.args[0] - inner.args[1] <= threshold + excess)
        chances.append(Chance(threshold, excess, constraint.level))
    return rows, chances


def without_chances(form: CanonicalForm) -> CanonicalForm:
    """The form without chance constraints: what a decision costs does not depend on them."""
    columns = np.ones(len(form.q), dtype=bool)
    columns[[*form.threshold, *form.excess]] = False
    none = replace(form, threshold=form.threshold[:0], excess=form.excess[:0], level=form.level[:0])
    return none.restricted(~(form.A[:, form.excess] != 0).any(1), columns)


def with_chances(program: ScenarioProgram, chances: list[Chance]) -> ScenarioProgram:
    """The program with every scenario's excess as last first-stage variables, and their rows."""
    M, n, K = program.n_scenarios, program.n_decisions, len(chances)
    if K == 0:
        return program
    pad = torch.nn.functional.pad
    excess = {chance.excess for chance in chances}
    kept = [u for u in range(program.n_recourse) if u not in excess]
    weights = program.weights.clamp_min(_LEAST_WEIGHT)
    budgets = []
    own = program.W.new_zeros(1, M, program.T.shape[-2], K * M)
    scenario = torch.arange(M)
    for k, (t, v, level) in enumerate(chances):
        row = program.W.new_zeros(1, n + K * M)
        row[:, t] = 1
        parts = [row[:, : n + k * M], weights / (1 - level), row[:, n + (k + 1) * M :]]
        budgets.append(joined(parts, -1).unsqueeze(1))
        coefficient = program.W[:1, :, : own.shape[2], v].expand(1, M, -1)
        own[:, scenario, :, k * M + scenario] = coefficient.transpose(0, 1)
    positive = pad(-torch.eye(K * M, dtype=own.dtype), (n, 0)).to(own)[None]
    wider = {name: pad(getattr(program, name), (0, K * M)) for name in "qGEF"}
    blocks = program.blocks() | {
        **wider,
        "P": pad(program.P, (0, K * M, 0, K * M)),
        "G": joined([wider["G"], *budgets, positive], -2),
        "h": pad(program.h, (0, K + K * M)),
        "T": joined([program.T, own], -1),
        "W": program.W[..., kept],
        "V": program.V[..., kept],
        "d": program.d[..., kept],
        "D": program.D[..., kept, :][..., kept],
    }
    for name, bound in program.bounds.items():
        late = name.startswith("recourse")
        infinite = -torch.inf if name.endswith("lower") else torch.inf
        blocks[name] = bound[..., kept] if late else pad(bound, (0, K * M), value=infinite)
    return ScenarioProgram(**blocks)
