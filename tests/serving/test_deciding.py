"""Answers are the library's, whatever else is asked at the same time."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

import forewise as fw
from forewise.serving.telemetry import warnings_heard
from tests.planner.tables import days_after
from tests.serving.conftest import sent, serving, weather


def records(frame):
    """Rows of a table as JSON has them."""
    return json.loads(frame.to_json(orient="records", date_format="iso", double_precision=15))


def test_decisions_are_those_of_the_library(client, plain):
    X, _ = weather()
    rows = client.decided(X.to_dict("records"), n_scenarios=20, random_state=3)
    expected = fw.load_policy(plain).decide(X, 20, 3)
    assert [row["decision"]["sales"] for row in rows] == expected["sales"].tolist()
    assert {row["status"] for row in rows} == {"optimal"}
    assert all(row["certificate"]["gap"] <= 1e-8 for row in rows)


def test_a_planner_answers_with_its_certificates(both, shops, sales):
    """From the stored table, and from a past that comes with the request."""
    future = days_after(sales, 1)
    expected = fw.load_policy(shops).decide(sales, future)
    future = future.assign(date=future["date"].astype(str))
    past = sales.assign(date=sales["date"].astype(str)).to_dict("records")
    asked = {"rows": future.to_dict("records"), "policy": "shops"}
    for body in (asked, asked | {"past": past}):
        answer = both.post("/decide", body).json()["rows"]
        for row, (_, own) in zip(answer, expected.iterrows(), strict=True):
            assert row["status"] == "optimal"
            assert row["decision"]["decision"] == own["decision"]
            for name, value in row["certificate"].items():
                np.testing.assert_array_equal(np.nan if value is None else value, own[name])


def test_hundreds_at_once_are_not_mixed(both, plain, shops, sales):
    """Each of them has rows, scenarios and seed of its own; some are wrong."""
    policy, random = fw.load_policy(plain), np.random.default_rng(1)
    asked = []
    for i in range(300):
        n_rows = int(random.integers(1, 4))
        X = pd.DataFrame(
            {"heat": random.normal(20, 5, n_rows), "day": random.choice(["sat", "mon"], n_rows)}
        )
        asked.append({"rows": X.to_dict("records"), "random_state": i % 3, "policy": "ice"})
        if i % 10 == 0:
            asked[-1]["rows"][0]["heat"] = "warm"
    future = days_after(sales, 1)
    future = future.assign(date=future["date"].astype(str))
    asked += [{"rows": future[k : k + 1].to_dict("records"), "policy": "shops"} for k in (0, 1)]
    with serving_room(both):
        answers = both.all(lambda c: [c.post("/decide", **sent(body)) for body in asked])
    for i, (body, answer) in enumerate(zip(asked[:300], answers, strict=False)):
        if i % 10 == 0:
            assert answer.status_code == 422
            assert "heat" in answer.json()["error"]
            continue
        expected = policy.decide(pd.DataFrame(body["rows"]), random_state=body["random_state"])
        found = [row["decision"]["sales"] for row in answer.json()["rows"]]
        assert found == expected["sales"].tolist()
    expected = fw.load_policy(shops).decide(sales, days_after(sales, 1))
    found = [answer.json()["rows"][0]["decision"]["decision"] for answer in answers[300:]]
    assert found == expected["decision"].tolist()
    sizes = both.get("/metrics").text
    count = float(sizes.split('forewise_batch_requests_count{policy="ice"} ')[1].split()[0])
    assert count < 150  # many of them shared a batch


class serving_room:  # noqa: N801
    """The queue takes all requests of a test."""

    def __init__(self, client):
        self.queues = [p.deciding._queue for p in client.shelf.policies.values()]

    def __enter__(self):
        self.sizes = [q.maxsize for q in self.queues]
        for q in self.queues:
            q.maxsize = 0

    def __exit__(self, *_):
        for q, size in zip(self.queues, self.sizes, strict=True):
            q.maxsize = size


def test_a_row_without_decision_leaves_its_neighbours(tmp_path):
    """Given rows: a budget below zero is infeasible, the others are decided."""
    import cvxpy as cp

    y, z, least = cp.Parameter(1), cp.Variable(1), cp.Parameter(1, name="least")
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.sum(cp.pos(y - z)) + 0.1 * cp.sum(z)), [z >= least, z <= 50],
        decision=z, outcome=y, given=[least],
    )  # fmt: skip
    X, sales = weather()
    given = pd.DataFrame({"least": np.ones(len(X))})
    fw.DecoupledLearner(problem, fw.EmpiricalPredictor()).fit(X, sales, given=given).policy_.save(
        tmp_path / "own"
    )
    with serving({"own": tmp_path / "own"}) as client:
        rows = X.head(3).to_dict("records")
        found = client.decided(rows, given={"least": [1.0, 60.0, 49.0]})
        assert [row["status"] for row in found] == ["optimal", "infeasible", "optimal"]
        assert found[1]["decision"] is None
        assert "relax" in found[1]["note"]
        alone = client.decided(rows[2:], given={"least": [49.0]})
        assert alone == found[2:]
        assert client.post("/decide", {"rows": rows}).status_code == 422


def test_explanations_are_those_of_the_library(both, plain, sales):
    X, _ = weather()
    answer = both.post("/explain", {"rows": X.head(1).to_dict("records"), "policy": "ice"})
    expected = fw.explain(fw.load_policy(plain), X.head(1)).to_dict()
    assert answer.json()["explanation"]["decision"] == expected["decision"]
    assert answer.json()["explanation"]["drivers"] == expected["drivers"]
    future = days_after(sales, 1).assign(date="2023-02-27").to_dict("records")
    why = both.post("/explain", {"rows": future[:1], "policy": "shops"}).json()["explanation"]
    assert why["neighbours"]
    assert both.post("/explain", {"rows": future, "policy": "shops"}).status_code == 422


def test_closed_days_and_new_series(both, shops, sales):
    """As the library decides them from the whole table, notes included."""
    future = pd.concat([days_after(sales, 2), days_after(sales, 1)[:1].assign(store="new")])
    future["closed"] = [False, True, False, False, False]
    with warnings_heard():
        expected = fw.load_policy(shops).decide(sales, future.reset_index(drop=True))
        future = future.assign(date=future["date"].astype(str))
        bodies = [{"rows": [row], "policy": "shops"} for row in future.to_dict("records")]
        bodies.append({"rows": future.to_dict("records"), "policy": "shops"})
        answers = both.all(lambda c: [c.post("/decide", **sent(body)) for body in bodies])
    rows = answers[-1].json()["rows"]
    assert [row["status"] for row in rows] == ["optimal", "closed", "optimal", "optimal", "optimal"]
    assert "new" in " ".join(answers[4].json()["notes"])
    for found in (rows, [answers[i].json()["rows"][0] for i in (0, 1, 2, 4)]):
        kept = expected if len(found) == 5 else expected.drop(index=3)
        assert [row["note"] for row in found] == kept["note"].tolist()
        decided = [np.nan if r["decision"] is None else r["decision"]["decision"] for r in found]
        np.testing.assert_array_equal(decided, kept["decision"])


def test_days_twice_and_unreadable_days_are_refused(both, sales):
    row = days_after(sales, 1)[:1].assign(date="2023-02-27").to_dict("records")[0]
    for rows in ([row, row], [row | {"date": "someday"}], [row | {"store": None}], [{}], [{"a": 1}],
                 [row | {"date": 10**18}], [row | {"date": "0001-01-01"}],
                 [row | {"date": "9999-12-31"}]):  # fmt: skip
        with warnings_heard():
            answer = both.post("/decide", {"rows": rows, "policy": "shops"})
        assert answer.status_code == 422 or rows[0]["date"] in ("9999-12-31", "0001-01-01")
        assert answer.status_code < 500, answer.text
