"""One context seen from all sides, and decided anew with other costs, limits or risk.

`Situations` keep the scenarios of the latest contexts, so that a question with another cost only
solves again. Nothing of a question changes the policy.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise.explanation.case import Case
from forewise.explanation.causes import binding_constraints, uncertainty
from forewise.explanation.parameters import Parameter, parameters, problem_with
from forewise.explanation.parts import Unavailable
from forewise.planner.certificate import ScenarioCosts
from forewise.planner.policy import PlannerPolicy
from forewise.policy import DirectPolicy, ScenarioPolicy
from forewise.problems.base import Problem, RiskAverseProblem, without_risk
from forewise.problems.feasibility import as_constant
from forewise.problems.newsvendor import Newsvendor
from forewise.problems.programs import IntegerProgram, ScenarioProgram
from forewise.problems.quadratic_newsvendor import QuadraticNewsvendor
from forewise.problems.risk import CVaR, Expectation, MeanCVaR, Risk, WorstCase
from forewise.scenarios import Scenarios
from forewise.serving.deciding import (
    UNREADABLE,
    Edition,
    Question,
    contexts_of,
    given_of,
    plain,
    refused,
    tables_of,
)
from forewise.serving.telemetry import heard
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.solution import Status

_KEPT = 32  # contexts
_MOST = 100_000  # numbers of scenarios that an answer has
_POINTS = 61  # of a cost curve
_SOLVED = 20  # of one whose every point is a program
_FEWEST = 5  # that a curve must have
_REACH = 3.0  # the largest value that is proposed for a number, in multiples of what it is
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A context, and what is to be other; the fields are those of the request."""

    question: Question
    parameters: Mapping[str, float] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    risk: Mapping[str, Any] | None = None
    trial: Mapping[str, float] | None = None
    about: str | None = None
    scenarios: bool = True


@dataclass(frozen=True, eq=False)
class Situation:
    """A context as the policy decides it, and what does not depend on the problem."""

    case: Case
    uncertainty: Any
    history: dict[str, Any] | None
    notes: list[str]


class Situations:
    """The latest contexts of a policy; for one thread."""

    def __init__(self) -> None:
        self._edition: Edition | None = None
        self._kept: OrderedDict[str, Situation] = OrderedDict()

    def of(self, edition: Edition, question: Question) -> Situation:
        """The situation of a question, kept or new."""
        if edition is not self._edition:
            self._edition = edition
            self._kept.clear()
        key = json.dumps(vars(question), sort_keys=True)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found = self._kept[key] = _situation(edition, question)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found


def view(edition: Edition, situations: Situations, asked: WhatIf) -> dict[str, Any]:
    """Decision, costs, curve and prices of a context, as JSON has them."""
    policy = edition.policy
    try:
        if isinstance(policy, DirectPolicy):
            return plain(_direct(policy, asked))
        situation = situations.of(edition, asked.question)
        case = _moved(situation.case, asked)
        found = _described(situation, case, asked)
        if case is situation.case and isinstance(policy, PlannerPolicy):
            found["interval"] = _interval(policy, case)
        return plain(found)
    except (ForewiseError, *UNREADABLE) as error:
        raise refused(error) from error


def _situation(edition: Edition, question: Question) -> Situation:
    policy, history = edition.policy, None
    with heard() as notes:
        if isinstance(policy, PlannerPolicy):
            past, future = tables_of(edition, question)
            read = policy.ask(past, future)
            if not len(read.places):
                raise InvalidInputError("this day is closed: there is nothing to decide")
            row, given = policy.inputs(read)
            inner, count = policy.inner, policy.n_scenarios
            if edition.past is not None and read.decided.days is not None:
                history = edition.past.history(read.decided.keys[0], read.decided.days[0])
        else:
            assert isinstance(policy, ScenarioPolicy)
            row, given = contexts_of(policy, question), given_of(policy.problem, question)
            inner, count = policy, 64
        problem = inner.problem.bound_for(1, given)
        case = Case.of(inner, problem, row, question.n_scenarios or count, question.seed)
        return Situation(case, uncertainty(case), history, notes)


def _moved(case: Case, asked: WhatIf) -> Case:
    """The case with other numbers and another risk; itself where nothing is asked to be other."""
    if not asked.parameters and not asked.factors and asked.risk is None:
        return case
    problem = case.problem
    values = _values(list(parameters(problem, case.outcome_names)), asked)
    if values:
        problem = problem_with(problem, values)
    if asked.risk is not None:
        problem = problem.with_risk(_risk(asked.risk))
    return replace(case, problem=problem, solution=case.solved(problem))


def _values(known: list[Parameter], asked: WhatIf) -> dict[str, torch.Tensor]:
    """The tensors of the parameters that are to be other."""
    fields = {parameter.name: parameter for parameter in known}
    places = {name: (p, place) for p in known for name, place in p.entries}
    _require_known("factors", asked.factors, fields)
    _require_known("parameters", asked.parameters, places)
    values = {name: fields[name].value * factor for name, factor in asked.factors.items()}
    for name, number in asked.parameters.items():
        parameter, place = places[name]
        value = values.setdefault(parameter.name, parameter.value).clone()
        value[place] = float(number)
        values[parameter.name] = value
    return values


def _require_known(name: str, asked: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    unknown = [repr(key[:80]) for key in asked if key not in known]
    if unknown:
        these = ", ".join(list(known)[:8]) or "none, for this problem has no such numbers"
        raise InvalidInputError(f"{name} must be of {these}; but {unknown[0]} is not")


def _risk(asked: Mapping[str, Any]) -> Risk:
    level, weight = float(asked["level"]), float(asked["weight"])
    if asked["measure"] == "mean":
        return Expectation()
    if asked["measure"] == "worst_case":
        return WorstCase()
    return CVaR(level) if asked["measure"] == "cvar" else MeanCVaR(weight, level)


def _described(situation: Situation, case: Case, asked: WhatIf) -> dict[str, Any]:
    status = case.solution.status[0]
    base = situation.case.problem
    found: dict[str, Any] = {
        "status": str(status),
        "note": "" if status is Status.OPTIMAL else status.advice,
        "changed": case is not situation.case,
        "extrapolates": bool(case.policy.predictor.extrapolates(case.context)[0]),
        "comparable": isinstance(without_risk(base), Newsvendor | QuadraticNewsvendor),
        "parameters": _proposed(base, case),
        "risk": _named_risk(case.problem) | {"unavailable": _no_risk(base)},
        "notes": situation.notes,
        "uncertainty": _part(situation.uncertainty),
        "outcomes": _outcomes(case),
    }
    if asked.scenarios:
        found["scenarios"] = _scenarios(case)
        found["history"] = situation.history
    if status is not Status.OPTIMAL:
        return found | {"decision": None}
    costs = case.costs_of(case.decision[None])
    equivalent = case.problem.certainty_equivalent()
    return found | {
        "decision": dict(zip(case.names, case.decision.tolist(), strict=True)),
        "expected_cost": float((case.scenarios.weights * costs).sum()),
        "objective": float(case.expected(costs)),
        "costs": costs[0].numpy(),
        "certainty_equivalent": "" if equivalent is None else equivalent.reason,
        "curve": _curve(case, _about(case, asked.about), situation.case),
        "mean_based": _mean_based(case),
        "constraints": _part(binding_constraints(case)),
        "trial": None if asked.trial is None else _trial(case, asked.trial),
    }


def _part(value: Any) -> Any:
    """A list of dataclasses, or why there is none."""
    if isinstance(value, Unavailable):
        return {"unavailable": value.reason}
    return [vars(part) for part in value]


def _scenarios(case: Case) -> dict[str, Any]:
    values = case.scenarios.values[0]
    if values.numel() > _MOST:
        return {
            "unavailable": f"the {values.numel()} numbers of the scenarios are too many to show"
        }
    return {"values": values.numpy().T, "weights": case.scenarios.weights[0].numpy()}


def _outcomes(case: Case) -> list[dict[str, Any]]:
    """Mean and quantiles of every outcome."""
    values, weights = case.scenarios.values[0].numpy(), case.scenarios.weights[0].numpy()
    ranks = ScenarioCosts(values.T, np.broadcast_to(weights, values.T.shape)).ranks(
        np.array(_LEVELS)
    )
    quantiles = np.take_along_axis(values.T, ranks, axis=1)
    return [
        {"name": name, "mean": mean, "quantiles": own}
        for name, mean, own in zip(case.outcome_names, weights @ values, quantiles, strict=True)
    ]


def _proposed(base: Problem, case: Case) -> list[dict[str, Any]]:
    """The numbers that can be moved: as the policy has them, as they are now, and how far."""
    found = []
    now = {p.name: p.value for p in parameters(case.problem, case.outcome_names)}
    for parameter in parameters(base, case.outcome_names):
        largest = float(parameter.value.abs().max())
        entries = []
        for name, place in parameter.entries:
            value = float(parameter.value[place])
            reach = _REACH * (abs(value) or largest or 1.0)
            entries.append(
                {"name": name, "base": value, "value": float(now[parameter.name][place]),
                 "low": -reach if value < 0 else 0.0, "high": reach}
            )  # fmt: skip
        found.append({"field": parameter.name, "kind": parameter.kind, "entries": entries})
    return found


def _named_risk(problem: Problem) -> dict[str, Any]:
    risk = problem.risk if isinstance(problem, RiskAverseProblem) else Expectation()
    names = {CVaR: "cvar", MeanCVaR: "mean_cvar", WorstCase: "worst_case"}
    found: dict[str, Any] = {"measure": names.get(type(risk), "mean")}
    if isinstance(risk, CVaR | MeanCVaR):
        found["level"] = risk.level
    return found | ({"weight": risk.weight} if isinstance(risk, MeanCVaR) else {})


def _no_risk(problem: Problem) -> str | None:
    """Why the risk cannot be another."""
    kind = without_risk(problem).program_type
    if kind is ScenarioProgram:
        return None
    return f"the problem becomes {kind.title}, for which a risk is written into its objective"


def _about(case: Case, name: str | None) -> int:
    if name is None:
        return int(np.argmax(case.decision.abs().numpy()))
    _require_known("about", {name: None}, dict.fromkeys(case.names))
    return case.names.index(name)


def _curve(case: Case, i: int, base: Case) -> dict[str, Any]:
    """The cost as one decision moves and the others stay; empty cells break a constraint.

    The range is made of the scenarios and of the policy's own decision, where both are of one kind,
    so that it stays where it is while a cost is moved.
    """
    chosen = float(case.decision[i])
    if isinstance(without_risk(case.problem), Newsvendor | QuadraticNewsvendor):
        outcome = case.scenarios.values[0, :, i]
        low, high = float(outcome.min()), float(outcome.max())
        reach = 0.08 * (high - low) or 0.25 * abs(high) or 1.0
        low, high = min(low - reach, chosen), max(high + reach, chosen)
        low = max(low, 0.0)
    else:
        scale = float(case.decision.abs().max()) or float(case.scenarios.values.abs().max()) or 1.0
        centre = float(base.decision[i])
        reach = max(0.75 * abs(centre), 0.25 * scale, 1.1 * abs(chosen - centre))
        low, high = centre - reach, centre + reach
    values = np.linspace(low, high, _POINTS)
    if case.problem.program_type is IntegerProgram:
        values = np.unique(chosen + np.round(values - chosen))
    values = np.unique(np.append(values, chosen))
    moved = case.decision.repeat(len(values), 1)
    moved[:, i] = torch.from_numpy(values)
    costs, others = case.expected(case.costs_of(moved)).numpy(), "kept"
    if np.isfinite(costs).sum() < _FEWEST and case.problem.program_type is ScenarioProgram:
        # A budget that must be spent allows no decision to move alone.
        values = values[:: max(1, len(values) // _SOLVED)]
        values = np.unique(np.append(values, chosen))
        costs, others = _with_others(case, i, values), "decided"
    return {"name": case.names[i], "values": values, "costs": costs, "others": others}


def _with_others(case: Case, i: int, values: np.ndarray) -> np.ndarray:
    """What the problem minimises if one decision has some values and the others are best for it."""
    program = case.problem.program(case.scenarios)
    assert isinstance(program, ScenarioProgram)
    n, E, e = len(values), as_constant(program.E), as_constant(program.e)
    row = E.new_zeros(1, 1, E.shape[-1])
    row[..., i] = 1.0
    held = torch.cat([e.expand(n, -1), torch.from_numpy(values)[:, None].to(e)], 1)
    weights = program.weights.expand(n, -1)
    fixed = replace(program, weights=weights, E=torch.cat([E, row], 1), e=held)
    solution = AutoSolver().solve_program(fixed)
    found = solution.objective.detach().numpy().copy()
    found[~solution.optimal.numpy()] = np.inf
    return found


def _mean_based(case: Case) -> dict[str, Any]:
    """The decision for the mean outcome, and what it costs in these scenarios."""
    middle = (case.scenarios.weights[..., None] * case.scenarios.values).sum(1, keepdim=True)
    solution = solve(case.problem, Scenarios(middle), case.policy.solver, on_failure="return")
    if solution.status[0] is not Status.OPTIMAL:
        return {"unavailable": f"the mean outcome has no optimal decision: {solution.status[0]}"}
    decision = solution.decision[0].detach().to(case.decision)
    return _costing(case, decision)


def _trial(case: Case, asked: Mapping[str, float]) -> dict[str, Any]:
    """What a decision of one's own would cost; what it does not name is as decided."""
    _require_known("trial", asked, dict.fromkeys(case.names))
    decision = case.decision.clone()
    for name, number in asked.items():
        decision[case.names.index(name)] = float(number)
    return _costing(case, decision)


def _costing(case: Case, decision: torch.Tensor) -> dict[str, Any]:
    costs = case.costs_of(decision[None])
    mean, objective = (case.scenarios.weights * costs).sum(), case.expected(costs)
    return {
        "decision": dict(zip(case.names, decision.tolist(), strict=True)),
        "allowed": bool(torch.isfinite(costs).all()),
        "expected_cost": float(mean),
        "objective": float(objective),
    }


def _interval(policy: PlannerPolicy, case: Case) -> dict[str, Any] | None:
    """The calibrated interval of the realised cost; of the policy's own problem alone."""
    if case.solution.status[0] is not Status.OPTIMAL:
        return None
    costs = ScenarioCosts.of(case.problem, case.decision[None], case.scenarios)
    lower, upper = policy.calibration.interval(costs)
    return {"lower": float(lower[0]), "upper": float(upper[0]), "level": policy.calibration.level}


def _direct(policy: DirectPolicy, asked: WhatIf) -> dict[str, Any]:
    """A rule without scenarios has a decision, and nothing else to show."""
    if asked.parameters or asked.factors or asked.risk is not None:
        raise InvalidInputError(
            "a direct rule has learned its decisions for the costs of its problem: it cannot say "
            "what it would decide with others"
        )
    question = asked.question
    given = given_of(policy.problem, question)
    with heard() as notes:
        contexts, problem = policy.checked(contexts_of(policy, question), given)
    solution = policy._decide(problem, contexts, 1, question.seed)
    status = solution.status[0]
    decided = status is Status.OPTIMAL
    decision = dict(zip(policy.decision_names, solution.decision[0].tolist(), strict=True))
    reason = {"unavailable": "this policy is a direct rule, from a row to a decision: it draws no "
              "scenarios, and knows neither costs nor uncertainty of a decision"}  # fmt: skip
    return {
        "status": str(status),
        "note": "" if decided else status.advice,
        "changed": False,
        "extrapolates": bool(policy.extrapolates(contexts)[0]),
        "comparable": False,
        "parameters": [],
        "risk": {"measure": "mean"} | reason,
        "notes": notes,
        "decision": decision if decided else None,
        "outcomes": [],
        **dict.fromkeys(("scenarios", "uncertainty", "curve", "mean_based", "constraints"), reason),
    }
