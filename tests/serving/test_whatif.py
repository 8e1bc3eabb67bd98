"""What if: the same decisions as the library's, with other costs, limits and risk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise.serving.telemetry import warnings_heard
from tests.planner.tables import days_after
from tests.serving.conftest import plain_policy, serving, weather

ROW = {"heat": 20.0, "day": "sun"}
ICE = "/policies/ice/whatif"


def seen(client: Any, path: str = ICE, row: Any = None, **fields: Any) -> dict[str, Any]:
    answer = client.post(path, {"rows": [row or ROW], **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def several(kind: type[fw.Learner] = fw.DecoupledLearner, **options: Any) -> Any:
    """A policy for three items with a budget."""
    X, _ = weather()
    sales = np.random.default_rng(1).gamma(4, 5, (len(X), 3))
    y = pd.DataFrame(sales, columns=["rolls", "bread", "cake"])
    n = np.ones(3)
    problem = fw.QuadraticNewsvendor(0.0, 0 * n, 0.0, 4 * n, 0.0, n, [1.0, 2.0, 3.0], 60.0)
    return kind(problem, **options).fit(X, y).policy_


@pytest.fixture(scope="module")
def bakery(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bakery") / "bakery"
    several(predictor=fw.NeighborPredictor(15)).save(folder)
    return folder


def test_nothing_moved_is_the_decision(both, sales, shops):
    """To the bit, of a plain policy and of a planner's, with the planner's interval."""
    assert seen(both)["decision"] == both.decided([ROW], policy="ice")[0]["decision"]
    row = days_after(sales, 1).astype({"date": str}).to_dict("records")[0]
    found = seen(both, "/policies/shops/whatif", row)
    decided = both.decided([row], policy="shops")[0]
    assert list(found["decision"].values()) == list(decided["decision"].values())
    assert found["expected_cost"] == pytest.approx(decided["certificate"]["expected_cost"])
    assert found["interval"]["lower"] == pytest.approx(decided["certificate"]["cost_lower"])
    assert found["interval"]["upper"] == pytest.approx(decided["certificate"]["cost_upper"])
    mean = found["mean_based"]["expected_cost"]
    assert mean == pytest.approx(decided["certificate"]["mean_based"])
    open_days = sales.loc[~sales["closed"], "date"]
    assert found["history"]["days"][-1] == str(open_days.max().date())


@pytest.mark.parametrize("shortage", [0.5, 2, 9.0])
def test_another_cost_is_another_policy(client, shortage):
    policy = plain_policy(shortage)
    expected = policy.decide(pd.DataFrame([ROW]))["sales"].iloc[0]
    found = seen(client, parameters={"shortage": shortage})
    assert found["decision"]["sales"] == expected
    assert found["changed"]
    assert "interval" not in found
    factor = seen(client, factors={"shortage": shortage / 3})
    assert factor["decision"]["sales"] == expected
    entry = found["parameters"][0]["entries"][0]
    assert (entry["base"], entry["value"]) == (3.0, shortage)
    assert seen(client)["decision"] == client.decided([ROW])[0]["decision"]  # nothing was kept


def test_the_curve_is_least_at_the_decision(client):
    for fields in (
        {},
        {"parameters": {"excess": 2.0}},
        {"risk": {"measure": "cvar", "level": 0.8}},
    ):
        found = seen(client, **fields)
        costs, values = np.array(found["curve"]["costs"]), np.array(found["curve"]["values"])
        at = int(np.flatnonzero(values == found["decision"]["sales"])[0])
        assert costs[at] == pytest.approx(found["objective"])
        assert costs.min() >= costs[at] * (1 - 1e-9)
        assert len(values) > 20
        trial = seen(client, trial={"sales": values[3]}, **fields)["trial"]
        assert trial["objective"] == pytest.approx(costs[3])


def test_risk(client):
    policy = plain_policy()
    X = pd.DataFrame([ROW])
    for risk, asked in (
        (fw.CVaR(0.8), {"measure": "cvar", "level": 0.8}),
        (fw.MeanCVaR(0.3, 0.9), {"measure": "mean_cvar", "level": 0.9, "weight": 0.3}),
        (fw.WorstCase(), {"measure": "worst_case"}),
    ):
        other = replace(policy, problem=policy.problem.with_risk(risk))
        expected = other.decide(X)["sales"].iloc[0]
        found = seen(client, risk=asked)
        assert found["decision"]["sales"] == pytest.approx(expected, abs=1e-6)
        assert found["risk"]["measure"] == asked["measure"]
    assert seen(client, risk={"measure": "mean"})["decision"] == seen(client)["decision"]


def test_a_budget_and_its_price(bakery):
    with serving({"bakery": bakery}) as client:
        path, costs = "/policies/bakery/whatif", {}
        for budget in (30.0, 30.01, 60.0, 500.0):
            found = seen(client, path, parameters={"budget": budget})
            costs[budget] = found["expected_cost"]
            prices = {b["name"]: b["shadow_price"] for b in found["constraints"]}
            assert ("budget" in prices) == (budget < 500)
            if budget == 30:
                price = prices["budget"]
        assert (costs[30.01] - costs[30.0]) / 0.01 == pytest.approx(price, rel=1e-3)
        assert costs[500.0] < costs[60.0] < costs[30.0]
        found = seen(client, path, about="bread", trial={"bread": 500.0})
        assert found["curve"]["name"] == "bread"
        assert not found["trial"]["allowed"]
        assert found["trial"]["expected_cost"] is None
        assert None in found["curve"]["costs"]


def test_a_budget_that_must_be_spent(tmp_path):
    """No holding moves alone: the curve lets the others follow, and is least at the decision."""
    X, _ = weather()
    returns = np.random.default_rng(0).normal([0.01, 0.03, 0.05], [0.01, 0.05, 0.1], (60, 3))
    problem = fw.Portfolio(returns.mean(0), 0.02, budget=1.0)
    learner = fw.DecoupledLearner(problem, fw.NeighborPredictor(40)).fit(X, returns)
    learner.policy_.save(tmp_path / "funds")
    with serving({"funds": tmp_path / "funds"}) as client:
        found = seen(client, "/policies/funds/whatif")
    curve = found["curve"]
    costs = [cost for cost in curve["costs"] if cost is not None]
    assert curve["others"] == "decided"
    assert len(costs) > 5
    assert min(costs) == pytest.approx(found["objective"], abs=1e-8)
    assert {b["name"] for b in found["constraints"]} >= {"budget"}


def test_a_direct_rule_says_what_it_cannot_show(tmp_path):
    several(fw.DirectLearner, network=fw.PointPredictor(training=fw.Training(epochs=2))).save(
        tmp_path / "rule"
    )
    with serving({"rule": tmp_path / "rule"}) as client:
        found = seen(client, "/policies/rule/whatif")
        assert found["decision"] == client.decided([ROW])[0]["decision"]
        assert "no scenarios" in found["scenarios"]["unavailable"]
        body = {"rows": [ROW], "factors": {"shortage": 2}}
        answer = client.post("/policies/rule/whatif", body)
        assert answer.status_code == 422
        assert "direct rule" in answer.json()["error"]


def test_given_data_can_be_moved(tmp_path):
    cp = pytest.importorskip("cvxpy")
    X, y = weather()
    order, demand, room = cp.Variable(nonneg=True), cp.Parameter(name="demand"), cp.Parameter(
        name="room", nonneg=True)  # fmt: skip
    cost = 3 * cp.pos(demand - order) + cp.pos(order - demand)
    problem = fw.CvxpyProblem(
        cp.Minimize(cost), [order <= room], decision=order, outcome=demand, given=room
    )
    learner = fw.DecoupledLearner(problem, fw.NeighborPredictor(15))
    learner.fit(X, y, given={"room": np.full(len(X), 40.0)}).policy_.save(tmp_path / "shop")
    with serving({"shop": tmp_path / "shop"}) as client:
        path = "/policies/shop/whatif"
        assert client.get("/policies/shop/form").json()["given"] == [{"name": "room", "shape": []}]
        assert client.post(path, {"rows": [ROW]}).status_code == 422
        low = seen(client, path, given={"room": [20.0]})
        moved = seen(client, path, given={"room": [90.0]}, parameters={"room": 20.0})
        assert moved["decision"] == pytest.approx(low["decision"])
        assert low["curve"]["costs"][-1] is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parameters": {"price": 1.0}}, "must be of shortage, excess"),
        ({"factors": {"price": 1.0}}, "must be of shortage, excess"),
        ({"parameters": {"shortage": -1.0}}, "shortage"),
        ({"parameters": {"shortage": 0, "excess": 0}}, "positive"),
        ({"parameters": {"shortage": "3"}}, "parameters"),
        ({"parameters": {"shortage": True}}, "parameters"),
        ({"parameters": {str(i): 1.0 for i in range(1001)}}, "at most 1000"),
        ({"risk": {"measure": "eval"}}, "measure"),
        ({"risk": {"measure": "cvar", "level": 1.0}}, "level"),
        ({"risk": {"measure": "cvar", "level": 0.5, "file": "x"}}, "file"),
        ({"about": "order"}, "must be of sales"),
        ({"trial": {"order": 1.0}}, "must be of sales"),
        ({"rows": [ROW, ROW]}, "at most 1"),
        ({"policy": "ice"}, "policy"),
        ({"n_scenarios": 10**6}, "n_scenarios"),
        ({"rows": [{"heat": 1.0}]}, "day"),
    ],
)
def test_mistakes_are_told(client, fields, message):
    answer = client.post(ICE, {"rows": [ROW]} | fields)
    assert answer.status_code == 422, answer.text
    assert message in answer.json()["error"]


def test_huge_and_tiny_numbers_are_answered(client):
    for number in (1e-300, 1e300, 1e-8, 1e8):
        answer = client.post(ICE, {"rows": [ROW], "parameters": {"shortage": number}})
        assert answer.status_code in (200, 422), answer.text
        if answer.status_code == 200:
            assert np.isfinite(answer.json()["decision"]["sales"])


def test_scenarios_are_drawn_once(client, monkeypatch):
    """Another cost solves again, another row draws again; a new edition forgets both."""
    predictor = type(client.shelf.find("ice").edition.policy.predictor)
    drawn, original = [], predictor.sample_checked
    monkeypatch.setattr(predictor, "sample_checked", lambda *a: drawn.append(1) or original(*a))
    row = {"heat": 23.5, "day": "mon"}
    for k in range(5):
        seen(client, row=row, parameters={"shortage": 1.0 + k})
    assert len(drawn) == 1
    seen(client, row=row | {"heat": 24.5})
    assert len(drawn) == 2


def test_rows_of_a_day(both, sales):
    """As the table has them, numbers as numbers; what it does not have is as it was last."""
    form = both.get("/policies/shops/form").json()
    assert form["days"]["next"] == str((sales["date"].max() + pd.Timedelta(days=1)).date())
    assert form["series"]["names"] == ["store 0", "store 1"]
    path = "/policies/shops/rows"
    known = sales[sales["date"] == sales["date"].max()].set_index("store")
    found = both.get(path, params={"day": str(sales["date"].max().date())}).json()["rows"]
    for row in found:
        own = known.loc[row["series"]]
        assert row["known"]
        assert row["outcome"]["sales"] == own["sales"]
        assert row["row"]["promotion"] is bool(own["promotion"])
    ahead = both.get(path, params={"day": "2023-03-05", "series": "store 1"}).json()["rows"]
    assert ahead[0]["row"] == {
        "date": "2023-03-05", "closed": True, "store": "store 1", "promotion": False,
    }  # fmt: skip
    assert not ahead[0]["known"]
    with warnings_heard():
        closed = both.post("/policies/shops/whatif", {"rows": [ahead[0]["row"]]})
    assert closed.status_code == 422
    assert "closed" in closed.json()["error"]
    for params, status in (({"day": "tomorrow"}, 422), ({"day": "2023-13-01"}, 422),
                           ({"day": "2023-02-01", "series": "x"}, 404), ({}, 422)):  # fmt: skip
        assert both.get(path, params=params).status_code == status
    assert both.get("/policies/ice/rows", params={"day": "2023-02-01"}).status_code == 422
    assert both.get("/policies/none/form").status_code == 404
