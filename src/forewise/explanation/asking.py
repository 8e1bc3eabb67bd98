"""The function that explains: it makes a `Case` of each context, and asks for every part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from forewise.exceptions import InvalidInputError
from forewise.explanation.case import Case
from forewise.explanation.causes import binding_constraints, cost_curves, drivers, uncertainty
from forewise.explanation.explanation import Explanation
from forewise.explanation.neighbours import Alternative, Past, alternatives, changes, neighbours
from forewise.explanation.sensitivity import sensitivities
from forewise.policy.base import DirectPolicy, ScenarioPolicy
from forewise.predictors.base import require_fitted
from forewise.validation.frames import as_frame, take_rows
from forewise.validation.given import given_rows
from forewise.validation.parameters import as_random_state, require_count
from forewise.validation.tables import check_same_rows


def explain(
    policy: Any,
    X: Any,
    *,
    given: Any = None,
    past: Any = None,
    others: Sequence[Sequence[Alternative]] | None = None,
    n_scenarios: int = 64,
    random_state: Any = 0,
) -> Any:
    """Why a policy decides what it decides: the scenarios, constraints and numbers behind it.

    Parameters
    ----------
    policy : ScenarioPolicy, or a fitted Learner that has one
    X : table (n_contexts, n_features)
        The contexts to explain.
    given : as for `Policy.decide`, optional
    past : tuple (X, y) or (X, y, labels), optional
        Past contexts (n_rows, n_features), their outcomes (n_rows, n_outcomes), and what to call
        the rows (n_rows,), their dates say: for the most similar rows, and for the changes of a
        column that would move the decision.
    others : sequence of sequences of Alternative, optional
        For each context, what could be otherwise, in the place of other values of its columns:
        where these were made of a table that the reader knows better.
    n_scenarios, random_state
        As for `Policy.decide`: the same numbers, the same decision.

    Returns
    -------
    Explanation, or a list of them where X has more than one row

    Notes
    -----
    With more than 12 decisions, the 12 largest are explained one by one.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(10.0, 30.0, size=(100, 1))
    >>> y = 5.0 * X[:, 0] + random.normal(size=100)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.NeighborPredictor(10)).fit(X, y)
    >>> why = fw.explain(learner, [[20.0]], n_scenarios=16)
    >>> print(why.text().splitlines()[2])
      Expected cost: 3.51.
    """
    if isinstance(policy, BaseEstimator):
        require_fitted(policy)
        policy = policy.policy_
    if isinstance(policy, DirectPolicy):
        raise InvalidInputError(
            "policy must draw scenarios, which explain a decision, but is a direct rule without "
            "any: use a DecoupledLearner or a CombinedLearner"
        )
    if not isinstance(policy, ScenarioPolicy):
        raise InvalidInputError(
            "policy must be a ScenarioPolicy, or a learner that has fitted one, but is a "
            f"{type(policy).__name__}; a planner explains by planner.explain(table, future)"
        )
    n_scenarios = require_count("n_scenarios", n_scenarios)
    seed = int(as_random_state(random_state).randint(2**31))
    n_contexts = len(policy.predictor.check_contexts(X))
    check_same_rows(X=X, given=given)
    policy.problem.bound_for(n_contexts, given)
    known = Past.checked(policy, past)
    if others is not None:
        check_same_rows(X=X, others=others)
    found = []
    for i in range(n_contexts):
        row = take_rows(X, np.array([i]))
        own = given_rows(given, np.array([i])) if n_contexts > 1 else given
        problem = policy.problem.bound_for(1, own)
        case = Case.of(policy, problem, row, n_scenarios, seed)
        tried = None if known is None else alternatives(case, known)
        found.append(_explained(case, known, tried if others is None else others[i]))
    return found[0] if len(found) == 1 else found


def _explained(case: Case, past: Past | None, tried: Sequence[Alternative] | None) -> Explanation:
    predictor, decision = case.policy.predictor, case.decision
    error = case.reweighted(case.problem).detach()[:, case.explained].std(0, correction=0).numpy()
    costs = case.costs_of(decision[None])
    equivalent = case.problem.certainty_equivalent()
    frame = as_frame(case.row)
    context = (
        dict(zip(map(str, frame.columns), frame.iloc[0], strict=True))
        if frame is not None
        else {f"column {i}": float(v) for i, v in enumerate(case.context[0])}
    )
    return Explanation(
        names=[case.names[i] for i in case.explained],
        decision=dict(zip(case.names, decision.tolist(), strict=True)),
        decision_error=case.named(error),
        expected_cost=float((case.scenarios.weights * costs).sum()),
        objective=float(case.expected(costs)),
        context=context,
        outcome_names=case.outcome_names,
        note="" if equivalent is None else equivalent.reason,
        extrapolates=bool(predictor.extrapolates(case.context)[0]),
        drivers=drivers(case),
        cost_curves=cost_curves(case),
        constraints=binding_constraints(case),
        uncertainty=uncertainty(case),
        sensitivities=sensitivities(case),
        neighbours=neighbours(case, past),
        changes=changes(case, tried, error),
    )
