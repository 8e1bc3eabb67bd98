"""A report: the answer it gives, that it is whole, valid and escaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise.exceptions import InvalidInputError, StorageError
from forewise.planner.evaluation import Evaluation
from forewise.report import report

EVIL = "<img src=x onerror=alert(1)>&\"'$x$"
VOID = {"meta", "path", "use", "rect", "br"}


def evaluated(costs):
    """What `Planner.evaluate` returns, made of costs that are known here."""
    tables = {
        name: costs[["date"]].assign(cost=costs[f"cost_{name}"])
        for name in ("planner", "today", "SAA")
    }
    return Evaluation(
        fw.metrics.compare_rolling(tables, "today", n_resamples=200), costs, "today", []
    )


def made(gain=10.0, name="Harbour", n_days=70):
    """A table, a policy, an evaluation and decisions; the planner saves `gain` a day."""
    random = np.random.default_rng(0)
    days = np.repeat(pd.date_range("2026-01-01", periods=n_days), 2)
    stores = np.tile([name, "Market"], n_days)
    sales = random.poisson(50, 2 * n_days).astype(float)
    table = pd.DataFrame({"date": days, "store": stores, "sales": sales})
    today = 30 + random.exponential(10, 2 * n_days)
    costs = table[["date", "store"]].assign(
        cost_planner=today - gain + random.normal(0, 1, 2 * n_days), cost_today=today,
        cost_SAA=today + 5, decision=sales + 3, cost_lower=0.0, cost_upper=60.0,
        sold_out=random.random(2 * n_days) < 0.1,
    ).iloc[40:]  # fmt: skip
    board = {"method": [name, "empirical"], "cost": [1.0, 2.0], "lower": [0.5, 1.5],
             "upper": [1.5, 2.5], "weight": [1.0, 0.0]}  # fmt: skip
    card = SimpleNamespace(notes=[f"{name} was read"], verdict=f"{name} is best", leaderboard=board,
                           columns={"column": ["sales"], "note": [name]}, n_rows=len(table),
                           first="2026-01-01", last="2026-03-11")  # fmt: skip
    policy = SimpleNamespace(
        card=card, problem=fw.Newsvendor(3, 1), decision_names=["decision"],
        roles=SimpleNamespace(outcome=["sales"], date="date", series=["store"]),
    )  # fmt: skip
    decisions = pd.DataFrame({
        "date": pd.Timestamp("2026-03-12"), "store": [name, "Market"], "decision": [61.26, 1234.6],
        "expected_cost": [15.0, np.nan], "cost_lower": [0.0, np.nan], "cost_upper": [53.9, np.nan],
        "note": ["", name],
    })  # fmt: skip
    return table, policy, evaluated(costs), decisions


class Page(HTMLParser):
    """The text of a page; fails where tags do not close in order, or something is loaded."""

    def __init__(self, text):
        super().__init__()
        self.open, self.parts, self.rows = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "img", "iframe", "link")
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href"):
                assert value.startswith("#")
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.parts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def written(tmp_path, table, policy, evaluation, **more):
    path = report(policy, table, evaluation, tmp_path / "report.html", **more)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    return Page(path.read_text())


def test_the_answer_comes_first_and_is_that_of_the_evaluation(tmp_path):
    table, policy, evaluation, decisions = made()
    page = written(tmp_path, table, policy, evaluation, decisions=decisions)
    share = evaluation.saving["share"]
    assert 0.2 < share < 0.3
    assert f"Saves {100 * share:.0f} %" in page.text
    order = ["What it saves", "Next decisions for Thu 2026-03-12", "Comparison",
             "Can the intervals be trusted?", "Decisions over time", "Worst days",
             "What it was learned from"]  # fmt: skip
    places = [page.text.index(title) for title in order]
    assert places == sorted(places)
    assert ["Harbour", "61.3", "15", "0 to 53.9"] in page.rows
    assert ["Market", "1,235", "Harbour"] in page.rows  # what is missing is left empty


def test_worst_days_are_the_dearest_with_bounds_where_sold_out(tmp_path):
    table, policy, evaluation, _ = made()
    page = written(tmp_path, table, policy, evaluation)
    worst = evaluation.costs.sort_values("cost_planner", ascending=False).head(10)
    (start,) = [i for i, row in enumerate(page.rows) if "with what was decided until now" in row]
    for row, (place, cost) in zip(page.rows[start + 1 : start + 11], worst.iterrows(), strict=True):
        assert row[:2] == [f"{cost['date']:%a %Y-%m-%d}", cost["store"]]
        bound = "≥ " if cost["sold_out"] else ""
        assert row[3] == f"{bound}{table['sales'][place]:.0f}"
        assert float(row[4]) == pytest.approx(cost["cost_planner"], rel=0.01)
    assert "No days to come were passed" in page.text


@pytest.mark.parametrize(("gain", "said"), [(0.0, "No clear difference"), (-10.0, "more")])
def test_what_saves_nothing_does_not_say_so(tmp_path, gain, said):
    table, policy, evaluation, _ = made(gain)
    page = written(tmp_path, table, policy, evaluation)
    assert said in page.text
    assert "Saves " not in page.text


def test_without_an_evaluation_the_page_says_what_is_known(tmp_path):
    table, policy, _, decisions = made()
    page = written(tmp_path, table, policy, None, decisions=decisions)
    assert "Not evaluated yet Harbour is best" in page.text
    assert "Worst days" not in page.text
    assert "Next decisions" in page.text


def test_names_of_a_table_cannot_do_anything(tmp_path):
    table, policy, evaluation, decisions = made(name=EVIL)
    renamed = {"store": EVIL, "sales": f"sales {EVIL}"}
    policy.roles = SimpleNamespace(outcome=[renamed["sales"]], date="date", series=[EVIL])
    costs = evaluation.costs.rename(columns=renamed)
    evaluation = replace(evaluation, costs=costs, notes=[EVIL])
    X = pd.DataFrame({EVIL: np.arange(20.0)})
    learner = fw.DecoupledLearner(policy.problem, fw.NeighborPredictor()).fit(X, X[EVIL])
    why = fw.explain(learner, X.head(1), past=(X, X[EVIL], [EVIL] * 20))
    page = written(
        tmp_path, table.rename(columns=renamed), policy, evaluation,
        decisions=decisions.rename(columns=renamed), explanation=why,
    )  # fmt: skip
    assert page.text.count(EVIL) > 10


def test_the_page_is_by_itself_and_the_same_every_time(tmp_path):
    table, policy, evaluation, decisions = made()
    paths = [tmp_path / "one.html", tmp_path / "two.html"]
    for path in paths:
        report(policy, table, evaluation, path, decisions=decisions)
    text = paths[0].read_text()
    assert text == paths[1].read_text()
    assert not re.findall(r"(?:src|href)=\"http", text)
    assert "url(http" not in text
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert "#1b1f24" not in text.partition("</style>")[2].lower()  # figures have the page's ink
    assert text.count('class="figure wide"') == text.count('class="figure narrow"') >= 4


def test_a_table_without_dates_or_series(tmp_path):
    table, policy, evaluation, decisions = made()
    policy.roles = SimpleNamespace(outcome=["sales"], date=None, series=[])
    policy.card.first = policy.card.last = ""
    plain = replace(evaluation, costs=evaluation.costs.drop(columns=["date", "store"]))
    page = written(tmp_path, table, policy, plain, decisions=decisions[["decision"]])
    assert "Decisions over time" not in page.text
    assert "Worst days" in page.text


def test_scale_does_not_matter(tmp_path):
    table, policy, evaluation, _ = made()
    costs = evaluation.costs.copy()
    for column in costs.filter(like="cost_"):
        costs[column] *= 1e8
    page = written(tmp_path, table, policy, evaluated(costs))
    assert f"Saves {100 * evaluation.saving['share']:.0f} %" in page.text


def test_a_failed_write_leaves_the_old_page(tmp_path, monkeypatch):
    table, policy, evaluation, _ = made()
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(StorageError, match="folder that exists"):
        report(policy, table, evaluation, tmp_path / "nowhere" / "report.html")
    with pytest.raises(InvalidInputError, match="table must be"):
        report(policy, table.drop(columns="sales"), evaluation, path)
    with pytest.raises(InvalidInputError, match="was evaluated"):
        report(policy, table.head(50), evaluation, path)
    with pytest.raises(InvalidInputError, match="decisions must be"):
        report(policy, table, evaluation, path, decisions=[1.0])
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
