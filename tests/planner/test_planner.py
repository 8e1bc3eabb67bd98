"""From a table to decisions: what a planner promises, through its public names."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise.planner.alternatives import alternatives
from tests.planner.tables import days_after, sales_table

PROBLEM = fw.Newsvendor(shortage=3, excess=1)
ROLES = {
    "outcome": "sales",
    "date": "date",
    "series": "store",
    "known": "promotion",
    "closed": "closed",
}


def quick(problem=PROBLEM, **more):
    return fw.Planner(problem, **(ROLES | {"learner": fw.NeighborPredictor(20)} | more))


@pytest.fixture(scope="module")
def table():
    return sales_table()


@pytest.fixture(scope="module")
def planner(table):
    return quick().fit(table)


def test_a_frame_of_decisions_with_certificates(planner, table):
    future = days_after(table)
    orders = planner.decide(table, future)
    assert list(orders.columns) == [
        "date", "store", "decision", "expected_cost", "cost_lower", "cost_upper",
        "perfect_information", "mean_based", "monte_carlo_error", "note",
    ]  # fmt: skip
    assert orders.index.equals(future.index)
    assert (orders["cost_lower"] <= orders["cost_upper"]).all()
    assert (orders["mean_based"] >= orders["expected_cost"] - 1e-9).all()
    # A newsvendor who knows the demand pays nothing.
    np.testing.assert_allclose(orders["perfect_information"], orders["expected_cost"])
    large, small = orders["decision"]
    assert 40 < large < 130
    assert 3 < small < 20


def test_contexts_of_some_rows_are_those_of_all(planner, table):
    recipe = planner.policy_.recipe
    rows, some = recipe.read(table, "table"), np.array([200, 3, 0, 140])
    whole = recipe.contexts(rows).iloc[some].reset_index(drop=True)
    pd.testing.assert_frame_equal(recipe.contexts(rows, some), whole)


def test_rows_and_columns_may_come_in_any_order(planner, table):
    future = days_after(table)
    shuffled = table.sample(frac=1, random_state=1)[table.columns[::-1]]
    pd.testing.assert_frame_equal(planner.decide(shuffled, future), planner.decide(table, future))
    again = quick().fit(shuffled)
    pd.testing.assert_frame_equal(again.decide(table, future), planner.decide(table, future))


def test_a_stored_policy_decides_alike(planner, table, tmp_path):
    planner.save(tmp_path / "policy")
    stored = fw.load_policy(tmp_path / "policy")
    assert isinstance(stored, fw.PlannerPolicy)
    future = days_after(table)
    pd.testing.assert_frame_equal(stored.decide(table, future), planner.decide(table, future))
    assert stored.card.notes == planner.notes_


def test_days_without_an_outcome_behind_the_last_are_decided(planner, table):
    future = days_after(table)
    whole = pd.concat([table, future], ignore_index=True)
    orders = planner.decide(whole)
    np.testing.assert_array_equal(orders["decision"], planner.decide(table, future)["decision"])


@pytest.mark.parametrize("horizon", [1, 8])
def test_features_use_nothing_later_than_the_horizon(horizon):
    table = sales_table(60)
    recipe = quick(horizon=horizon).fit(table).policy_.recipe
    known = ["store", "promotion", "closed"]
    fw.testing.check_no_future(recipe.build, table, known=known, n_days=3)
    # Values of the last days before the horizon count no more than those of the day itself.
    late = table["date"] > table["date"].max() - pd.Timedelta(days=horizon)
    changed = table.assign(sales=table["sales"].where(~late, 999.0))
    last = (table["date"] == table["date"].max()).to_numpy()
    pd.testing.assert_frame_equal(
        recipe.build(changed)[last], recipe.build(table)[last], check_exact=True
    )


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_change_nothing(planner, table, scale):
    other = table.assign(sales=table["sales"] * scale)
    future = days_after(table)
    orders = quick().fit(other).decide(other, future)
    expected = planner.decide(table, future)
    for column in ("decision", "expected_cost", "cost_upper", "monte_carlo_error"):
        np.testing.assert_allclose(orders[column] / scale, expected[column], rtol=1e-6)


def test_a_new_series_is_decided_as_its_likes_and_reported(planner, table):
    new = days_after(table).head(1).assign(store="new")
    with pytest.warns(fw.exceptions.ColumnWarning, match="'new' 1 times"):
        order = planner.decide(table, new).iloc[0]
    assert "no past of this series" in order["note"]
    # Something between the two stores that are known.
    assert 5 < order["decision"] < 100


def test_a_short_past_counts(planner, table):
    young = table[table["store"] == "store 0"].tail(6).assign(store="young")
    young["sales"] *= 10
    future = days_after(table).head(1).assign(store="young")
    with pytest.warns(fw.exceptions.ColumnWarning):
        order = planner.decide(pd.concat([table, young]), future).iloc[0]
    assert "short past" in order["note"]
    assert order["decision"] > 200


def test_closed_days_are_not_decided_and_no_zero_demand(planner, table):
    orders = planner.decide(table, days_after(table).assign(closed="yes"))
    assert orders["decision"].isna().all()
    assert (orders["note"] == "closed").all()
    recipe = planner.policy_.recipe
    contexts = recipe.build(table)
    # Sundays are closed, so that the day before a Monday says nothing of demand.
    assert contexts["sales_days_since"].max() == 2


def test_far_days_are_reported(planner, table):
    orders = planner.decide(table, days_after(table, 4))
    reported = orders["note"].str.contains("longer than usual")
    assert reported.tolist() == [False, False, True, True] * 2


def test_a_series_of_twenty_rows():
    table = sales_table(20, (50.0,)).drop(columns="store")
    planner = quick(series=(), learner=fw.EmpiricalPredictor()).fit(table)
    order = planner.decide(table, days_after(table.assign(store="x")).drop(columns="store"))
    assert 40 < order["decision"].iloc[0] < 130
    assert order["cost_upper"].isna().all()
    assert any("too few past decisions" in note for note in planner.notes_)


def test_zero_demand_is_demand(table):
    nothing = table.assign(sales=0.0)
    orders = quick().fit(nothing).decide(nothing, days_after(table))
    assert (orders["decision"] == 0).all()


def test_nothing_to_decide(planner, table):
    empty = planner.decide(table, days_after(table).head(0))
    assert len(empty) == 0
    with pytest.raises(fw.InvalidInputError, match="nothing to decide"):
        planner.decide(table)


def test_several_outcomes_and_what_is_given(table):
    cp = pytest.importorskip("cvxpy")
    order, demand = cp.Variable(2, nonneg=True, name="order"), cp.Parameter(2, name="demand")
    budget = cp.Parameter(name="budget")
    cost = 4 * cp.sum(cp.pos(demand - order)) + cp.sum(cp.pos(order - demand))
    problem = fw.CvxpyProblem(
        cp.Minimize(cost), [cp.sum(order) <= budget], decision=order, outcome=demand, given=budget
    )
    both = table[table["store"] == "store 0"].assign(other=lambda t: t["sales"] / 2, budget=60.0)
    planner = quick(
        problem, outcome=["sales", "other"], given="budget", learner=fw.EmpiricalPredictor()
    ).fit(both)
    future = pd.concat([days_after(both).assign(budget=b) for b in (20.0, 500.0)])
    orders = pd.concat([planner.decide(both, future.iloc[[i]]) for i in (0, 1)])
    spent = orders[["decision_order[0]", "decision_order[1]"]].sum(axis=1)
    assert spent.iloc[0] == pytest.approx(20, abs=1e-5)
    assert spent.iloc[1] > 60


def test_a_plain_table_of_rows(table):
    random = np.random.default_rng(0)
    plain = pd.DataFrame({"x": random.normal(size=200), "kind": random.choice(["a", "b"], 200)})
    plain["id"] = [f"row {i}" for i in range(200)]
    plain["y"] = 20 + 4 * plain["x"] + random.normal(size=200)
    planner = fw.Planner(PROBLEM, outcome="y", learner=fw.NeighborPredictor(15)).fit(plain)
    assert any("'id' is left out" in note for note in planner.notes_)
    low, high = planner.decide(future=pd.DataFrame({"x": [-1.0, 1.0], "kind": ["a", "a"]}))[
        "decision"
    ]
    assert high > low + 4
    evaluation = planner.evaluate(plain)
    assert evaluation.saving["lower"] > 0
    assert len(evaluation.costs) == len(plain)


def test_why(planner, table):
    why = planner.explain(table, days_after(table).head(1))
    decided = planner.decide(table, days_after(table))["decision"].iloc[0]
    assert why.decision["sales"] == decided
    assert "store" in str(why.neighbours[0].label)


def test_what_would_change_a_decision_is_said_in_columns_of_the_table(table):
    """Each change that is named is made in the table, and decided."""
    planner = quick(learner=fw.NeighborPredictor(5)).fit(table)
    future = days_after(table).iloc[:1]
    why = planner.explain(table, future)
    found = {change.column: change for change in why.changes}
    assert (found["promotion"].now, found["promotion"].then) == (True, False)
    other = planner.decide(table, future.assign(promotion=False))["decision"].iloc[0]
    assert found["promotion"].decision["sales"] == other
    level = found["mean sales of the weeks before"]
    own = table["store"] == future["store"].iloc[0]
    sales = table["sales"].where(~own, table["sales"] * level.then / level.now)
    raised = planner.decide(table.assign(sales=sales), future)["decision"].iloc[0]
    assert level.decision["sales"] == pytest.approx(raised, rel=1e-3)
    assert "promotion no instead of yes" in why.text()


@pytest.mark.parametrize("name", ["sales", "temperature"])
def test_a_single_day_of_the_past_may_be_what_matters(table, name):
    """A rule that looks at one day: its other values are tried on that day."""
    planner = quick().fit(table)
    future = days_after(table).iloc[:1]
    rows, wanted = planner.policy_.rows(table, future)
    recipe = planner.policy_.recipe
    past = planner.policy_.past.contexts.astype(float)
    context = recipe.contexts(rows, wanted).to_numpy()[0]
    tried = alternatives(recipe, rows, int(wanted[0]), context, past)
    day = table["date"][(table["store"] == "store 0") & ~table["closed"]].max()
    column = f"{name} on {day:%a %Y-%m-%d}"
    own = [other for other in tried if other.column == column]
    assert len(own) > 5
    where = (table["store"] == "store 0") & (table["date"] == day)
    assert own[0].now == table.loc[where, name].iloc[0]
    changed = table.assign(**{name: table[name].mask(where, own[0].then)})
    rows, wanted = planner.policy_.rows(changed, future)
    np.testing.assert_allclose(recipe.contexts(rows, wanted).to_numpy()[0], own[0].context)


def test_what_a_mean_or_median_decides_is_noted_and_not_warned_of(table):
    planner = quick(fw.Newsvendor(shortage=2, excess=2)).fit(table)
    assert any("a forecast of the median is enough" in note for note in planner.notes_)


def test_the_best_of_several_methods(table):
    candidates = {"all days": fw.EmpiricalPredictor(), "alike": fw.NeighborPredictor(15)}
    learner = fw.AutoLearner(PROBLEM, candidates, ordered=True, random_state=0)
    planner = quick(learner=learner).fit(table)
    assert set(planner.leaderboard_["method"]) >= set(candidates)
    assert planner.policy_.card.verdict == planner.verdict_ != ""
    assert planner.policy_.calibration.n_rows == len(planner.evaluated_.realised)
    assert len(planner.decide(table, days_after(table))) == 2


@pytest.mark.slow
def test_without_a_learner_it_finds_one():
    table = sales_table(120)
    planner = quick(learner=None, time_limit=10).fit(table)
    orders = planner.decide(table, days_after(table))
    assert orders["cost_upper"].notna().all()
    assert planner.verdict_


@pytest.mark.parametrize("name", ["decide", "explain"])
def test_a_planner_is_asked_as_its_policy_is(name):
    own, stored = (getattr(kind, name) for kind in (fw.Planner, fw.PlannerPolicy))
    assert inspect.signature(own) == inspect.signature(stored)
