"""What people see: the call that makes an object, and a table in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch

import forewise as fw

X = np.random.default_rng(0).normal(size=(20, 2))
y = np.random.default_rng(1).uniform(1, 9, (20, 1))
PROBLEM = fw.Newsvendor(shortage=3, excess=1)
HOSTILE = "<script>alert('&')</script>"


@pytest.mark.parametrize(
    "made",
    [
        "Newsvendor(shortage=3, excess=1)",
        "Newsvendor(shortage=[1, 2, 3], excess=0.25)",
        "Portfolio(expected_return=[0.1, 0.2], minimum_return=0.1)",
        "Portfolio(expected_return=[0.1, 0.2], minimum_return=0.1, budget=1, upper=[0.5, 0.75])",
        "QuadraticNewsvendor(quadratic=[1, 2], linear=[1, 1], shortage_quadratic=[1, 1], "
        "shortage=[3, 3], excess_quadratic=[1, 1], excess=[2, 2], price=[1, 2], budget=20)",
        "CVaR(level=0.9)",
        "AutoSolver()",
        "InteriorPointSolver(smoothing=0.1)",
        "ReferenceSolver()",
        "RidgeSolver(weight=0.1, general=InteriorPointSolver(smoothing=0.1))",
        "IntegerSolver(time_limit=60)",
        "Training(epochs=3)",
    ],
)
def test_what_is_shown_is_the_call_that_makes_it(made):
    names = vars(fw.solvers) | {name: getattr(fw, name) for name in fw.__all__}
    assert repr(eval(made, names)) == made


@pytest.mark.parametrize(
    "thing",
    [
        PROBLEM,
        fw.Newsvendor(np.arange(1.0, 200), 1),
        fw.Newsvendor(torch.tensor(3.0, requires_grad=True), 1),
        fw.QuadraticNewsvendor(np.eye(3), np.ones(3), np.eye(3), 1.0, np.eye(3), 2.0),
        PROBLEM.with_risk(fw.CVaR(0.9)),
        fw.DecoupledLearner(PROBLEM, fw.NeighborPredictor()),
        fw.CombinedLearner(
            PROBLEM, fw.predictors.MeanFieldPredictor(training=fw.Training(epochs=3))
        ),
        fw.DecoupledLearner(PROBLEM, fw.NeighborPredictor()).fit(X, y).policy_,
        fw.solve(PROBLEM, fw.Scenarios(np.ones((50, 9, 30)))),
        fw.solve(PROBLEM, fw.Scenarios(np.ones((50, 9, 30)))).duals,
        fw.Scenarios(np.ones((50, 9, 30))),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_nothing_shows_tensors(thing):
    text = repr(thing)
    assert "tensor(" not in text
    assert len(text) < 400
    assert "\n\n" not in text


def test_problems_are_seen_in_learners_and_policies():
    learner = fw.DecoupledLearner(PROBLEM, fw.NeighborPredictor())
    assert repr(PROBLEM) in repr(learner)
    assert repr(learner.fit(X, y).policy_) == (
        "ScenarioPolicy(problem=Newsvendor(shortage=3, excess=1), predictor=NeighborPredictor())"
    )


def test_large_integers_keep_all_digits():
    assert repr(fw.Newsvendor(1234567, 1)) == "Newsvendor(shortage=1234567, excess=1)"


def test_a_problem_that_keeps_no_arguments_is_shown():
    class Own(fw.Newsvendor):
        def __init__(self, price, *others, **more):
            super().__init__(price, 1)

    assert repr(Own(3)) == "Own()"


class _Cells(HTMLParser):
    """Texts of a page, and its tags."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.tags, self.rows = [], set(), 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.rows += tag == "tr"

    def handle_data(self, data):
        self.texts.append(data)


def hostile_policy():
    z, demand = cp.Variable(1, nonneg=True, name=HOSTILE), cp.Parameter(1, name="demand")
    cost = 3 * cp.sum(cp.pos(demand - z)) + cp.sum(cp.pos(z - demand))
    problem = fw.CvxpyProblem(cp.Minimize(cost), decision=z, outcome=demand)
    table = pd.DataFrame(y, columns=[HOSTILE])
    return fw.DecoupledLearner(problem, fw.NeighborPredictor()).fit(X, table).policy_


def test_notebooks_show_policies_with_escaped_names():
    page = _Cells(hostile_policy()._repr_html_())
    assert "script" not in page.tags
    assert any(HOSTILE in text for text in page.texts)
    assert {"problem", "predictor", "solver", "decisions"} <= set(page.texts)


def test_notebooks_show_solutions_by_context():
    values = np.random.default_rng(2).uniform(1, 9, (30, 5, 20))
    values[3] = np.nan
    solution = fw.solve(PROBLEM, fw.Scenarios(values), on_failure="return")
    page = _Cells(solution._repr_html_())
    assert 2 < page.rows < 20  # a head, and not a row for each of many contexts
    assert "invalid" in page.texts
    assert any(fw.Status.INVALID.advice in text for text in page.texts)
    assert any("29 optimal" in text for text in page.texts)


def test_notebooks_show_scenarios_by_outcome():
    weighted = fw.Scenarios([[[2.0], [6.0]]], weights=[[1.0, 3.0]])
    page = _Cells(weighted._repr_html_())
    assert page.texts[-3:] == ["5", "2", "6"]  # mean, smallest, largest
    assert any("2 scenarios" in text and "1 outcome," in text for text in page.texts)
    many = fw.Scenarios(torch.ones(1000, 3, 50, requires_grad=True))
    assert _Cells(many._repr_html_()).rows < 20
