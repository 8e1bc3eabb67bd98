"""Answers of a policy to questions: one batch, each row to the bit as the library decides it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise.explanation import Explanation
from forewise.explanation import explain as explained
from forewise.explanation.text import sentences
from forewise.planner.answers import Question as PlannerQuestion
from forewise.planner.policy import PlannerPolicy
from forewise.policy import DirectPolicy, ScenarioPolicy
from forewise.policy.base import Policy
from forewise.problems.base import Problem
from forewise.serving.past import Past
from forewise.serving.reading import RequestError
from forewise.serving.telemetry import heard
from forewise.solvers.solution import Status
from forewise.validation.columns import Columns
from forewise.validation.encodings import CategoryColumn
from forewise.validation.parameters import as_random_state

_OUTSIDE = "far outside the range of the training rows"
#: What data of a request may raise where the library reads them.
UNREADABLE = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)


@dataclass(frozen=True, eq=False)
class Edition:
    """A policy as it was loaded once, with the past that it decides from."""

    policy: Policy | PlannerPolicy
    version: str
    loaded: str
    past: Past | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """What a request asks of a policy."""

    rows: list[dict[str, Any]]
    past: list[dict[str, Any]] | None = None
    given: dict[str, list[Any]] | None = None
    n_scenarios: int | None = None
    random_state: int = 0

    @property
    def seed(self) -> int:
        """As `decide` makes it of its `random_state`."""
        return int(as_random_state(self.random_state).randint(2**31))


@dataclass(frozen=True, eq=False)
class Answer:
    """A result for each row, and notes about how the rows were read."""

    rows: list[dict[str, Any]]
    notes: list[str]


def decide(edition: Edition, questions: Sequence[Question]) -> list[Answer | RequestError]:
    """The answer to every question, or the error that it leads to."""
    answers: dict[int, Answer | RequestError] = {}
    noted: dict[int, list[str]] = {}
    batches: dict[tuple[int, int], list[tuple[int, Any]]] = defaultdict(list)
    policy = edition.policy
    default = policy.n_scenarios if isinstance(policy, PlannerPolicy) else 64
    together = _read_together(edition, questions)
    for i, question in enumerate(questions):
        try:
            with heard() as noted[i]:
                read = together.get(i) or _read(edition, question)
        except RequestError as error:
            answers[i] = error
            continue
        batches[question.n_scenarios or default, question.seed].append((i, read))
    for (n_scenarios, seed), batch in batches.items():
        asked = [read for _, read in batch]
        if isinstance(policy, PlannerPolicy):
            found = _planned(policy, asked, n_scenarios, seed)
        else:
            found = _decided(policy, asked, n_scenarios, seed)
        for (i, _), rows in zip(batch, found, strict=True):
            answers[i] = Answer(rows, noted[i])
    return [answers[i] for i in range(len(questions))]


def explain(edition: Edition, question: Question) -> dict[str, Any]:
    """Why the row of a question is decided as it is, and notes about how it was read."""
    with heard() as notes:
        return {"explanation": _explained(edition, question), "notes": notes}


def _explained(edition: Edition, question: Question) -> dict[str, Any]:
    policy = edition.policy
    options: dict[str, Any] = {"random_state": question.random_state}
    if question.n_scenarios is not None:
        options["n_scenarios"] = question.n_scenarios
    try:
        if isinstance(policy, PlannerPolicy):
            past, future = tables_of(edition, question)
            return _told(policy.explain(past, future, **options))
        given = given_of(policy.problem, question)
        return _told(explained(policy, contexts_of(policy, question), given=given, **options))
    except (ForewiseError, *UNREADABLE) as error:
        raise refused(error) from error


def _told(why: Explanation) -> dict[str, Any]:
    """An explanation as JSON has it, and in sentences."""
    return why.to_dict() | {"sentences": sentences(why)}


def _read_together(edition: Edition, questions: Sequence[Question]) -> dict[int, _Read]:
    """Questions whose cells are of the same types, read as one table, as far as nothing is odd.

    What has a note or a mistake in it, or text that is not a category, is left to be read alone.
    """
    policy, found = edition.policy, dict[int, _Read]()
    columns = None if isinstance(policy, PlannerPolicy) else fitted_columns(policy)
    if isinstance(policy, PlannerPolicy) or columns is None:
        return found
    texts = {part.name for part in columns.parts if isinstance(part, CategoryColumn)}
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for i, question in enumerate(questions):
        types = {tuple((n, type(v)) for n, v in row.items()) for row in question.rows}
        plain = question.given is None and question.past is None and len(types) == 1
        sort = types.pop()
        if plain and all(t in (int, float) or (t is str and n in texts) for n, t in sort):
            alike[sort].append(i)
    for places in alike.values():
        if len(places) < 2:
            continue
        rows = [row for i in places for row in questions[i].rows]
        try:
            with heard() as notes:
                contexts, _ = policy.checked(contexts_of(policy, Question(rows)))
        except UNREADABLE:
            continue
        ends = np.cumsum([len(questions[i].rows) for i in places])
        if not notes:
            parts = np.split(contexts, ends[:-1])
            found |= {i: _Read(part, None) for i, part in zip(places, parts, strict=True)}
    return found


def _read(edition: Edition, question: Question) -> Any:
    """The question as its policy takes it; what cannot be read is a `RequestError`."""
    policy = edition.policy
    try:
        if isinstance(policy, PlannerPolicy):
            return policy.ask(*tables_of(edition, question))
        given = given_of(policy.problem, question)
        contexts, _ = policy.checked(contexts_of(policy, question), given)
        return _Read(contexts, given)
    except UNREADABLE as error:
        raise refused(error) from error


def refused(error: Exception) -> RequestError:
    """What the client gets to know of an error about its data."""
    known = isinstance(error, ForewiseError)
    what = str(error) if known else f"the rows cannot be read ({type(error).__name__}: {error})"
    return RequestError(422, what[:2000])


@dataclass(frozen=True, eq=False)
class _Read:
    contexts: np.ndarray  # (n_rows, n_inputs)
    given: dict[str, np.ndarray] | None


def tables_of(edition: Edition, question: Question) -> tuple[Any, pd.DataFrame]:
    """The past and the rows to decide, as a planner's policy takes them."""
    policy = edition.policy
    assert isinstance(policy, PlannerPolicy)
    future = pd.DataFrame(question.rows)
    if question.given is not None:
        raise InvalidInputError("given must be left out: this policy has it in columns of the rows")
    if policy.roles.date is None:
        return None, future
    if question.past is not None:
        return pd.DataFrame(question.past), future
    if edition.past is None:
        raise InvalidInputError(
            "past must have the rows of the days before, with their outcomes: the service was "
            "started without a table of the past"
        )
    return edition.past.of(future), future


def contexts_of(policy: Policy, question: Question) -> Any:
    """The rows as a table in the policy's columns."""
    if question.past is not None:
        raise InvalidInputError("past must be left out: this policy decides from the rows alone")
    frame = pd.DataFrame(question.rows)
    names = input_names(policy)
    lacking = [name for name in names if name not in frame.columns]
    unknown = [str(name) for name in frame.columns if name not in set(names)]
    for problem, found in (("have the columns", lacking), ("not have the columns", unknown)):
        if found:
            raise InvalidInputError(f"rows must {problem} {', '.join(map(repr, found[:5]))}")
    if fitted_columns(policy) is None:
        return frame[names].to_numpy(dtype=np.float64)
    return frame[names]


def fitted_columns(policy: Policy) -> Columns | None:
    """The columns that training encoded; None where it had an array."""
    return getattr(policy.fitted, "table_columns_", None)


def input_names(policy: Policy) -> list[str]:
    """Columns of a row: those of the training table, or x0, x1 ... where it was an array."""
    columns = fitted_columns(policy)
    if columns is not None:
        return list(columns.names)
    return [f"x{i}" for i in range(policy.fitted.n_features_in_)]


def given_of(problem: Problem, question: Question) -> dict[str, np.ndarray] | None:
    if question.given is None:
        return None
    found = {name: np.asarray(v, dtype=np.float64) for name, v in question.given.items()}
    for name, values in found.items():
        if len(values) != len(question.rows) or not np.isfinite(values).all():
            raise InvalidInputError(
                f"given must have a finite value for each of the {len(question.rows)} rows, but "
                f"{name!r} has not"
            )
    return found


def _decided(policy: Policy, asked: list[_Read], n_scenarios: int, seed: int) -> list[Any]:
    """Rows of every answer, all solved as one batch."""
    contexts = np.concatenate([read.contexts for read in asked])
    parts = [read.given for read in asked if read.given is not None]
    given = {n: np.concatenate([p[n] for p in parts]) for n in parts[0]} if parts else None
    problem = policy.problem.bound_for(len(contexts), given)
    outside, names = policy.extrapolates(contexts), policy.decision_names
    rows: list[dict[str, Any]] = []
    for _, solution in policy.pieces(problem, contexts, n_scenarios, seed):
        figures = {
            "objective": solution.objective.detach(),
            "primal_residual": solution.primal_residual,
            "dual_residual": solution.dual_residual,
            "gap": solution.gap,
        }
        lists = {name: values.tolist() for name, values in figures.items()}
        for i, decision in enumerate(solution.decision.detach().tolist()):
            status, note = solution.status[i], _OUTSIDE if outside[len(rows)] else ""
            certificate = {name: values[i] for name, values in lists.items()}
            rows.append(_row(status, dict(zip(names, decision, strict=True)), certificate, note))
    ends = np.cumsum([len(read.contexts) for read in asked])
    return [rows[end - len(read.contexts) : end] for end, read in zip(ends, asked, strict=True)]


def _planned(
    policy: PlannerPolicy, asked: list[PlannerQuestion], n_scenarios: int, seed: int
) -> list[Any]:
    answers, names = [], policy.decision_names
    for frame, status in policy.answer(asked, n_scenarios, seed):
        figures = frame.columns[frame.columns.get_loc(names[-1]) + 1 : -1]
        rows = []
        for own, values in zip(status, frame.to_dict("records"), strict=True):
            decision = {name: values[name] for name in names}
            rows.append(_row(own, decision, {n: values[n] for n in figures}, values["note"]))
        answers.append(rows)
    return answers


def _row(
    status: Status | None, decision: dict[str, float], certificate: dict[str, float], note: str
) -> dict[str, Any]:
    decided = status is Status.OPTIMAL
    if status is not None and not decided and not note:
        note = status.advice
    return {
        "status": "closed" if status is None else str(status),
        "decision": decision if decided else None,
        "certificate": plain(certificate) if decided else None,
        "note": note,
    }


def plain(value: Any) -> Any:
    """A value as JSON has it; what is not finite is null."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str) or value is None else str(value)


def kind(policy: Policy | PlannerPolicy) -> str:
    """What sort of policy can be served; others are refused when they are loaded."""
    for known in (PlannerPolicy, ScenarioPolicy, DirectPolicy):
        if isinstance(policy, known):
            return known.__name__
    raise InvalidInputError(
        f"a served policy must be a PlannerPolicy, ScenarioPolicy or DirectPolicy, but is a "
        f"{type(policy).__name__}"
    )
