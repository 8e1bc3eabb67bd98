"""What is behind a decision: its scenarios, the cost around it, constraints, and uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from forewise.explanation.case import Case
from forewise.explanation.parts import Binding, CostCurve, Drivers, Unavailable, Uncertainty
from forewise.predictors import Predictor, RelativePredictor, StackedPredictor
from forewise.problems.base import without_risk
from forewise.problems.bounds import BoundRows
from forewise.problems.feasibility import Constraints, as_constant
from forewise.problems.programs import IntegerProgram, ScenarioProgram
from forewise.solvers.bounds import joined_duals

_HALF = 20  # points of a cost curve to each side of the decision
_DRAWS = 256  # of each part of a union
_ACTIVE = 1e-7  # slack of a binding row, relative to its terms


def drivers(case: Case) -> Drivers:
    """The scenarios, and which of them the decision rests on."""
    outcome = case.scenarios.values[0]
    weight = case.scenarios.weights[0]
    decision = case.decision.expand(len(outcome), -1).clone().requires_grad_()
    cost = case.problem.unchecked_cost(decision, outcome)
    slope = torch.zeros_like(decision)
    if cost.requires_grad:
        (slope,) = torch.autograd.grad(cost.sum(), decision)
    wants = slope[:, case.explained]
    return Drivers(
        outcome=outcome.numpy(),
        weight=weight.numpy(),
        cost=cost.detach().numpy(),
        share=_influence(case),
        more=(weight[:, None] * (wants < 0)).sum(0).numpy(),
        less=(weight[:, None] * (wants > 0)).sum(0).numpy(),
    )


def _influence(case: Case) -> np.ndarray | Unavailable:
    """Shares ``(n_explained, n_scenarios)``; `Drivers` has the definition."""
    reason = without_risk(case.problem).gradient_unsupported_reason()
    if reason is not None:
        return Unavailable(f"{type(case.problem).__name__} has no derivative: {reason}")
    values = case.scenarios.values.clone().requires_grad_()
    decisions = case.reweighted(case.problem, values)
    if not len(decisions) or not decisions.requires_grad:
        return Unavailable(f"{case.policy.solver!r} has no derivatives")
    mean = decisions.mean(0)
    slopes = [torch.autograd.grad(mean[i], values, retain_graph=True)[0][0] for i in case.explained]
    centre = case.scenarios.weights[0] @ values[0].detach()
    spread = (case.scenarios.weights[0] @ (values[0].detach() - centre).square()).sqrt()
    size = (torch.stack(slopes).abs() * spread).sum(-1)
    total = size.sum(1, keepdim=True)
    return torch.where(total > 0, size / torch.where(total > 0, total, 1.0), 0.0).numpy()


def cost_curves(case: Case) -> list[CostCurve]:
    """The expected cost as one decision moves, to both sides by half of it or more."""
    decision = case.decision
    scale = float(decision.abs().max()) or float(case.scenarios.values.abs().max()) or 1.0
    curves = []
    for i in case.explained:
        reach = max(0.5 * abs(float(decision[i])), 0.25 * scale)
        step = reach / _HALF
        if case.problem.program_type is IntegerProgram:
            step = max(1.0, round(step))
        moved = decision.repeat(2 * _HALF + 1, 1)
        moved[:, i] += step * torch.arange(-_HALF, _HALF + 1)
        cost = case.expected(case.costs_of(moved))
        chosen = float(decision[i])
        curves.append(CostCurve(case.names[i], chosen, moved[:, i].numpy(), cost.numpy()))
    return curves


def binding_constraints(case: Case) -> list[Binding] | Unavailable:
    """First-stage constraints that hold with equality, with the multipliers of the solution."""
    with torch.no_grad():
        built = case.problem.program(case.scenarios)
    program = built if isinstance(built, ScenarioProgram) else built.plain
    bounds = BoundRows.of(program)
    program, duals = bounds.added(program), joined_duals(bounds, case.solution.duals)
    multipliers = torch.cat([duals.inequality[0], duals.equality[0]]).detach()
    G, h, E, e = (as_constant(block)[0] for block in (program.G, program.h, program.E, program.e))
    if len(multipliers) != len(G) + len(E) or bool(multipliers.isnan().any()):
        return Unavailable(
            f"{type(case.problem).__name__} is solved without multipliers of its constraints"
        )
    x = case.solution.first_stage[0].detach().to(G)
    if len(x) != G.shape[1]:
        x = torch.cat([case.decision, x.new_zeros(G.shape[1] - len(case.decision))])
    own = case.problem.constraints(len(case.decision))
    named = list(_rows(own))
    found = []
    for row, bound, multiplier, equal in [
        *zip(G, h, multipliers, [False] * len(G), strict=False),
        *zip(E, e, multipliers[len(G) :], [True] * len(E), strict=True),
    ]:
        terms = (row * x).abs().max() if len(row) else bound.abs()
        slack = bound - row @ x
        if not equal and slack.abs() > _ACTIVE * max(float(terms), float(bound.abs())):
            continue
        if not bool(row.any()):
            continue
        name, sign = _name(named, row, bound, equal, own.variables)
        # A multiplier is how fast the cost falls as the right-hand side of a'x ≤ b grows.
        found.append(Binding(name, -sign * float(multiplier)))
    return found


def _rows(own: Constraints) -> Iterator[tuple[str, torch.Tensor, torch.Tensor, bool]]:
    """Names of the constraints as a user knows them, with their rows."""
    for kind, matrix, bound in (("G", own.G, own.h), ("E", own.E, own.e)):
        matrix, bound = as_constant(matrix)[0], as_constant(bound)[0]
        for i, (row, right) in enumerate(zip(matrix, bound, strict=True)):
            yield own.name((kind, i), 0), row, right, kind == "E"


def _name(
    named: list[tuple[str, torch.Tensor, torch.Tensor, bool]],
    row: torch.Tensor,
    bound: torch.Tensor,
    equal: bool,
    variables: Sequence[str],
) -> tuple[str, float]:
    """The user's name of a row, and −1 where the user's right-hand side is minus the row's."""
    padded = row.new_zeros(len(row) + 1)
    padded[:-1], padded[-1] = row, bound
    size = padded.abs().max()
    # a'x ≤ b with a ≤ 0 is read as −a'x ≥ −b.
    flipped = -1.0 if bool((row <= 0).all()) else 1.0
    for name, other, right, _ in named:
        theirs = padded.new_zeros(len(padded))
        width = min(len(other), len(row))
        theirs[:width], theirs[-1] = other[:width], right
        for sign in (1.0, -1.0):
            if bool(((padded - sign * theirs).abs() <= 1e-9 * size).all()):
                # A row of the user's own that is turned over, as −return ≤ −minimum.
                turned = bool((other <= 0).all())
                return name, sign * (-1.0 if turned else 1.0)
    return _printed(row, bound, equal, variables), flipped


def _printed(row: torch.Tensor, bound: torch.Tensor, equal: bool, variables: Sequence[str]) -> str:
    names = [*variables, *(f"auxiliary {i}" for i in range(len(row)))]
    none = row.new_zeros(1, 0, len(row)), row.new_zeros(1, 0)
    block = row[None, None], bound[None, None]
    single = Constraints(names, *(none + block if equal else block + none))
    return single.name(("E" if equal else "G", 0), 0)


@runtime_checkable
class _Decomposes(Protocol):
    """A predictor that knows the two parts of its variance."""

    def epistemic_aleatoric(self, X: Any) -> tuple[np.ndarray, np.ndarray]: ...


def uncertainty(case: Case) -> list[Uncertainty] | Unavailable:
    """Epistemic and aleatoric variance of every outcome."""
    predictor = case.policy.predictor
    inner = predictor.part_ if isinstance(predictor, RelativePredictor) else predictor
    if isinstance(predictor, StackedPredictor):
        parts, how = _of_union(case, predictor), "disagreement of the union's parts"
    else:
        known, how = _decomposed(case, predictor), f"by the {type(inner).__name__} itself"
        if known is None:
            return Unavailable(
                f"{type(inner).__name__} draws from one distribution and does not say how sure "
                "it is of it; BayesianPredictor, EnsemblePredictor, GaussianProcessPredictor and "
                "unions of several predictors do"
            )
        parts = known
    epistemic, aleatoric = parts
    return [
        Uncertainty(name, float(of_model), float(noise), how)
        for name, of_model, noise in zip(case.outcome_names, epistemic, aleatoric, strict=True)
    ]


def _decomposed(case: Case, predictor: Predictor) -> tuple[np.ndarray, np.ndarray] | None:
    """Both variances ``(n_outcomes,)`` as the predictor knows them; None where it does not."""
    if isinstance(predictor, RelativePredictor):
        inner = _decomposed(case, predictor.part_)
        size = np.exp(2 * case.context[0, predictor.level_columns_])
        return None if inner is None else (size * inner[0], size * inner[1])
    if not isinstance(predictor, _Decomposes):
        return None
    epistemic, aleatoric = predictor.epistemic_aleatoric(case.row)
    return epistemic[0], aleatoric[0]


def _of_union(case: Case, union: StackedPredictor) -> tuple[np.ndarray, np.ndarray]:
    """The variance between the parts' means, with what the parts know themselves; and the rest."""
    weights, means, totals, own = union.part_weights_, [], [], []
    for part in union.parts_:
        drawn = part.sample_checked(case.context, _DRAWS, case.seed)
        values, weight = drawn.values[0].double(), drawn.weights[0].double()
        mean = weight @ values
        means.append(mean.numpy())
        totals.append((weight @ (values - mean).square()).numpy())
        known = _decomposed(case, part)
        own.append(np.zeros(len(mean)) if known is None else known[0])
    between = weights @ (np.array(means) - weights @ np.array(means)) ** 2
    within = np.minimum(own, totals)
    return between + weights @ within, weights @ (np.array(totals) - within)
