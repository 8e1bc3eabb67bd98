"""The choice among predictors: by the cost of decisions, out of fold, and said plainly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.utils.estimator_checks import parametrize_with_checks

import forewise as fw
from forewise.learners import default_candidates
from forewise.learners.out_of_fold import Evaluator, Record, Resamples, best_union, make_folds
from forewise.parallel import Processes
from forewise.testing import check_learner
from tests.learners.test_given import BUDGET, problem_with_budget
from tests.learners.test_given import X as GIVEN_X
from tests.learners.test_given import Y as GIVEN_Y
from tests.learners.test_learners import BUDGETED, NEWSVENDOR, PORTFOLIO, table, wave

SIMPLE = {"past": fw.EmpiricalPredictor(), "near": fw.NeighborPredictor()}
SOME = [
    fw.EmpiricalPredictor(),
    fw.NeighborPredictor(),
    fw.ForestPredictor(n_trees=10),
    fw.NeighborPredictor(kernel="epanechnikov"),
]
KEPT = fw.PointPredictor(training=fw.Training(checkpoint="folder"))


@dataclass(eq=False, repr=False)
class Failing(fw.Predictor):
    """Fails on more than `at_most` rows."""

    at_most: int = 0

    def _fit(self, X, y):
        if len(X) > self.at_most:
            raise RuntimeError("too many rows\nand more")
        self.mean_ = y.mean(0)

    def _scenarios(self, X, n_scenarios, random):
        return fw.Scenarios(np.broadcast_to(self.mean_, (len(X), 1, len(self.mean_))).copy())


@dataclass(eq=False, repr=False)
class Partial(fw.Predictor):
    """Knows nothing of contexts above one half."""

    def _fit(self, X, y):
        self.mean_ = y.mean(0)

    def _scenarios(self, X, n_scenarios, random):
        values = np.broadcast_to(self.mean_, (len(X), 1, len(self.mean_))).copy()
        values[X[:, 0] > 0.5] = np.nan
        return fw.Scenarios(values)


@pytest.mark.parametrize("problem", [NEWSVENDOR, BUDGETED, PORTFOLIO], ids=type)
def test_contract(problem):
    check_learner(fw.AutoLearner(problem, SOME, random_state=0), *table())


@parametrize_with_checks([fw.AutoLearner(NEWSVENDOR, SIMPLE, n_folds=2, random_state=0)])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_it_finds_the_predictor_that_reads_the_context():
    (X, y), (X_new, y_new) = wave(300, 0), wave(300, 1)
    learner = fw.AutoLearner(NEWSVENDOR, SIMPLE, random_state=0).fit(X, y)
    board = learner.leaderboard_.set_index("method")
    assert board.index[-1] == "past"
    assert board.weight["near"] > board.weight["past"]
    assert board.difference["past"] > 2 * board.error["past"]
    assert (board.lower <= board.cost).all()
    assert (board.cost <= board.upper).all()
    assert "near costs least" in learner.verdict_
    near = fw.DecoupledLearner(NEWSVENDOR, fw.NeighborPredictor()).fit(X, y)
    assert learner.score(X_new, y_new) > 1.05 * near.score(X_new, y_new)


def test_it_says_where_a_simple_method_is_as_good():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(300, 2)), random.gamma(4.0, size=300)  # nothing to be learned
    learner = fw.AutoLearner(NEWSVENDOR, SIMPLE, random_state=0).fit(X, y)
    notes = learner.leaderboard_.set_index("method").note
    assert "simplest within one standard error" in notes["past"]
    assert "past" in learner.verdict_


def test_weights_add_up_and_are_those_of_the_policy():
    X, y = wave(200, 0)
    learner = fw.AutoLearner(NEWSVENDOR, SOME, random_state=0).fit(X, y)
    board = learner.leaderboard_
    parts = board[board.method != "union"]
    assert parts.weight.sum() == pytest.approx(1)
    used = parts[parts.weight > 0].set_index("method").weight
    predictor = learner.policy_.predictor
    if len(used) > 1:
        kinds = [type(part).__name__ for part in predictor.parts_]
        assert sorted(kinds) == sorted(name.split()[0] for name in used.index)
        assert board.method[0] == "union"
        assert board.cost[0] < parts.cost.min()
    else:
        assert type(predictor).__name__ == used.index[0].split()[0]


def test_a_union_is_solved_anew_and_beats_its_parts():
    """One part knows only low outcomes, the other only high ones; the truth is half of each."""
    random = np.random.default_rng(0)
    outcome = torch.from_numpy(np.where(random.random(400) < 0.5, 0.0, 10.0))[:, None]
    rows, problem = np.arange(400), fw.Newsvendor(2.0, 3.0)
    evaluator = Evaluator(None, None, None, outcome, problem, fw.AutoSolver(), 16, 0)
    drawn = {
        name: fw.Scenarios(torch.full((400, 16, 1), value)) for name, value in (("a", 0), ("b", 9))
    }
    records = {name: Record(evaluator.costs(part, rows), part) for name, part in drawn.items()}
    weights, union = best_union(evaluator, records, rows, dict.fromkeys(records, np.inf))
    assert set(weights) <= {"a", "b"}
    assert union.costs.mean() <= min(record.costs.mean() for record in records.values())
    # What is clearly worse alone is no part, whatever it does on these rows.
    best = min(records, key=lambda name: records[name].rank(problem))
    assert set(best_union(evaluator, records, rows, dict.fromkeys(records, 0.0))[0]) == {best}


def test_a_candidate_that_fails_is_listed():
    X, y = wave(100, 0)
    candidates = {"broken": Failing(), **SIMPLE}
    learner = fw.AutoLearner(NEWSVENDOR, candidates, random_state=0).fit(X, y)
    row = learner.leaderboard_.set_index("method").loc["broken"]
    assert row.note == "RuntimeError: too many rows"
    assert row.weight == 0
    assert np.isnan(row.cost)
    with pytest.raises(fw.ForewiseError, match=r"every candidate failed.*too many rows"):
        fw.AutoLearner(NEWSVENDOR, [Failing()]).fit(X, y)


def test_a_candidate_that_fails_on_all_rows_is_replaced_by_the_others():
    X, y = np.zeros((100, 1)), np.full(100, 3.0)
    learner = fw.AutoLearner(NEWSVENDOR, {"few": Failing(90), **SIMPLE}, random_state=0)
    with pytest.raises(fw.ForewiseError, match="cannot be fitted to all rows"):
        learner.fit(X, y)  # all are perfect, the first is taken, and it fails
    y = wave(100, 0)[1]
    board = learner.fit(X, y).leaderboard_.set_index("method")
    assert board.weight["few"] == 0


def test_the_number_of_processes_changes_nothing():
    X, y = wave(120, 0)
    one, two = (
        fw.AutoLearner(NEWSVENDOR, SOME, n_jobs=n_jobs, random_state=0).fit(X, y)
        for n_jobs in (1, 2)
    )
    assert np.array_equal(one.decide(X), two.decide(X))
    columns = ["method", "cost", "lower", "upper", "weight", "note"]
    pd.testing.assert_frame_equal(one.leaderboard_[columns], two.leaderboard_[columns])


def test_candidates_and_folds_are_computed_where_the_map_says():
    @dataclass(frozen=True)
    class Backwards(Processes):
        def numbered(self, function, tasks):
            for number, task in reversed(list(enumerate(tasks))):
                computed.append(task)
                yield number, function(task)

    X, y = wave(80, 0)
    computed: list[object] = []
    one, other = (
        fw.AutoLearner(NEWSVENDOR, SOME, n_folds=3, map=where, random_state=0).fit(X, y)
        for where in (None, Backwards())
    )
    assert len(computed) > len(SOME) * 2
    columns = ["method", "cost", "weight", "note"]
    pd.testing.assert_frame_equal(one.leaderboard_[columns], other.leaderboard_[columns])


def test_rows_in_time_are_judged_by_the_past_alone():
    for n_rows in (4, 10, 57, 1000):
        folds = make_folds(n_rows, 5, ordered=True, seed=0, at_most=10**6)
        held = np.concatenate([fold.held for fold in folds])
        assert len(np.unique(held)) == len(held)
        assert held.min() >= n_rows // 2 - 1
        for fold in folds:
            assert fold.train.max() < fold.held.min()
            assert np.array_equal(fold.train, np.arange(fold.held.min()))


def test_folds_cover_the_rows_once_unless_these_are_many():
    folds = make_folds(57, 5, ordered=False, seed=3, at_most=10**6)
    assert np.array_equal(np.sort(np.concatenate([f.held for f in folds])), np.arange(57))
    for fold in folds:
        assert not set(fold.train) & set(fold.held)
    assert [len(f.held) for f in make_folds(10_000, 5, False, 0, at_most=3500)] == [2000, 1500]
    assert [len(f.held) for f in make_folds(10_000, 5, False, 0, at_most=2500)] == [2000]
    assert len(make_folds(2, 5, False, 0, 100)[0].train) == 2


def test_order_matters_where_the_past_says_less():
    """After a jump in level, rows at random hide what rows in time show."""
    X = np.arange(200.0)[:, None]
    y = np.where(X[:, 0] < 150, 1.0, 10.0) + np.random.default_rng(0).normal(size=200) * 0.1
    boards = [
        fw.AutoLearner(NEWSVENDOR, SIMPLE, ordered=ordered, random_state=0).fit(X, y).leaderboard_
        for ordered in (False, True)
    ]
    costs = [board.set_index("method").cost["near"] for board in boards]
    assert costs[1] > 2 * costs[0]


def test_what_is_given_follows_the_rows(tmp_path):
    learner = fw.AutoLearner(problem_with_budget(), SIMPLE, random_state=0)
    learner.fit(GIVEN_X, GIVEN_Y, given=BUDGET)
    orders = learner.decide(GIVEN_X, given=BUDGET)
    assert (orders.sum(1) <= BUDGET + 1e-6).all()
    parts = learner.leaderboard_.query("method != 'union'")
    assert parts.cost.notna().all()
    learner.policy_.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy")
    assert np.array_equal(loaded.decide(GIVEN_X, given=BUDGET), orders)


def test_validation_rows_judge_in_the_place_of_folds():
    X, y = wave(100, 0)
    learner = fw.AutoLearner(NEWSVENDOR, SIMPLE, random_state=0).fit(X, y, *wave(50, 1))
    near = fw.DecoupledLearner(NEWSVENDOR, fw.NeighborPredictor()).fit(X, y)
    cost = learner.leaderboard_.set_index("method").cost["near"]
    assert cost == pytest.approx(-near.score(*wave(50, 1)), rel=0.02)


def test_a_risk_is_judged_as_it_is_scored():
    X, y = wave(150, 0)
    problem = NEWSVENDOR.with_risk(fw.CVaR(0.8))
    board = fw.AutoLearner(problem, SIMPLE, random_state=0).fit(X, y).leaderboard_
    mean = fw.AutoLearner(NEWSVENDOR, SIMPLE, random_state=0).fit(X, y).leaderboard_
    assert board.cost.min() > mean.cost.min()


def test_a_time_limit_leaves_out_what_is_late():
    X, y = wave(100, 0)
    learner = fw.AutoLearner(NEWSVENDOR, SIMPLE, time_limit=1e-9, random_state=0)
    with pytest.raises(fw.ForewiseError, match="the time was up"):
        learner.fit(X, y)
    assert len(learner.set_params(time_limit=600).fit(X, y).leaderboard_) >= 2


def test_where_nothing_can_be_decided_it_says_so():
    X, y = wave(40, 0)
    impossible = fw.Portfolio([0.1, 0.2], 5.0, upper=[1.0, 1.0])
    with pytest.raises(fw.ForewiseError, match="no candidate's scenarios led to a decision"):
        fw.AutoLearner(impossible, SOME, n_folds=2, n_scenarios=4).fit(X, np.column_stack([y, y]))


def test_rows_without_a_decision_are_told():
    X, y = wave(60, 0)
    learner = fw.AutoLearner(NEWSVENDOR, [Partial()], random_state=0).fit(X, y)
    n_missing = int((X[:, 0] > 0.5).sum())
    assert f"without {n_missing} of 60 rows that have no decision" in learner.verdict_


def test_rows_without_recourse_count_before_the_cost():
    some, more = Record(np.array([9.0, 9.0, np.nan])), Record(np.array([0.0, np.inf, np.nan]))
    assert some.rank(NEWSVENDOR) < more.rank(NEWSVENDOR)
    draws = Resamples.draw(3, ordered=False, seed=0)
    assert np.isfinite(draws.standard_error(NEWSVENDOR, some.costs, more.costs))


def test_default_candidates_suit_the_table():
    small, large = default_candidates(200, 5, 1), default_candidates(50_000, 5, 3)
    assert "Gaussian process" in small
    assert "Gaussian process" not in large
    assert "boosted residuals" in large
    assert "boosted quantiles" in large
    many = default_candidates(1_500, 3, 15)  # in which each outcome would have its own models
    assert not {"boosted quantiles", "Gaussian process"} & set(many)
    assert "linear residuals" not in default_candidates(20, 30, 1)
    assert next(iter(small)) == "empirical"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidates": []}, "candidates must be predictors"),
        ({"candidates": "forest"}, "candidates must be predictors"),
        ({"candidates": {"forest": fw.ForestPredictor}}, "candidate 'forest' must be"),
        ({"candidates": [fw.EnsemblePredictor(KEPT)]}, "must have no checkpoint folder"),
        ({"candidates": [fw.StackedPredictor([KEPT])]}, "must have no checkpoint folder"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"map": 2}, "map must be"),
        ({"n_folds": 1}, "n_folds must be"),
        ({"time_limit": 0}, "time_limit must be"),
        ({"n_scenarios": 0}, "n_scenarios must be"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_wrong_settings_are_told(settings, message):
    with pytest.raises(fw.ForewiseError, match=message):
        fw.AutoLearner(NEWSVENDOR, **({"candidates": SIMPLE} | settings)).fit(*wave(20, 0))
