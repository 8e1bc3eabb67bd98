"""Plans: what is wrong is reported with its line, what was expected, and what to write."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import forewise as fw
from forewise.cli.plan import read_plan
from forewise.cli.proposal import propose
from forewise.cli.templates import TEMPLATES, own_problem
from forewise.cli.writing import plan_text
from forewise.exceptions import InvalidInputError

PLAN = """\
[columns]
outcome = "sales"
date = "date"
series = ["store", "product"]
known = ["price"]

[problem]
template = "newsvendor"
shortage = 3.0
excess = 1

[planning]
horizon = 2
"""


def plan_of(folder, text=PLAN):
    (folder / "plan.toml").write_text(text)
    return read_plan(folder / "plan.toml")


def test_a_plan_makes_a_planner(tmp_path):
    plan = plan_of(tmp_path)
    problem = plan.made_problem()
    assert isinstance(problem, fw.Newsvendor)
    planner = fw.Planner(problem, **plan.arguments())
    assert (planner.outcome, planner.horizon, planner.known) == ("sales", 2, ["price"])


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("known =", "knwon =", r"line 5: knwon is no key of \[columns\]: did you mean known"),
        ("horizon = 2", "horizont = 2", "line 13: horizont is no key.*did you mean horizon"),
        ("horizon = 2", 'horizon = "two"', "line 13: horizon must be an integer.*'two'.*= 1"),
        ("horizon = 2", "horizon = true", "line 13: horizon must be an integer"),
        ("horizon = 2", "time_limit = -1", "line 13: time_limit must be a number of seconds above"),
        ("excess = 1", "", r"line 7: \[problem\] must say excess.*write, say, excess = 1.0"),
        ("excess = 1", 'excess = "1"', "line 10: excess must be a number, or one for each"),
        ("excess = 1", "excess = nan", "line 10: excess must be a number"),
        ("excess = 1", "penalty = 1", "line 10: penalty is no key of"),
        ('"newsvendor"', '"newsboy"', "line 8: template must be one of newsvendor, budget"),
        ('outcome = "sales"', "", r"line 1: \[columns\] must say outcome"),
        ('outcome = "sales"', "outcome = 3", "line 2: outcome must be names of columns"),
        ('["price"]', '["price", "price"]', "line 5: known must be names of columns, none twice"),
        ("[planning]", "[plan]", "line 12: 'plan' is no section.*"),
        ("[columns]", "horizon = 3\n[columns]", r"line 1: 'horizon' is no section.*\[planning\]"),
        ("excess = 1", "excess = ", "is not TOML.*line 10"),
        ("[planning]", "[columns.kinds]\nprice = 'colour'", "line 12: kinds must be columns with"),
    ],
)
def test_what_is_wrong_has_a_line_and_advice(tmp_path, old, new, reported):
    with pytest.raises(InvalidInputError, match=reported) as raised:
        plan_of(tmp_path, PLAN.replace(old, new, 1))
    assert str(raised.value).startswith(str(tmp_path / "plan.toml"))


def test_columns_that_the_table_has_not(tmp_path):
    plan = plan_of(tmp_path)
    table = pd.DataFrame(columns=["date", "sale", "store", "product", "price"])
    with pytest.raises(
        InvalidInputError, match=r"line 2: outcome names 'sales', but t.csv.*'sale'"
    ):
        plan.require_columns(table, Path("t.csv"))


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("excess = 1", "excess = [1, 2]", "line 2: outcome names 1 columns.*decides about 2"),
        ("shortage = 3.0", "shortage = -3", "line 9: shortage must be"),
        (
            '"newsvendor"',
            '"budget"\nprice = [1, 2]\nbudget = 9',
            "line 9: price must be one number, or 1",
        ),
        (
            '"newsvendor"',
            '"budget"\nprice = 1\nbudget = "room"',
            "line 10: budget names the column 'room': write given",
        ),
        ('"newsvendor"', '"schedule"', "line 8: template 'schedule' must have an outcome for"),
        ('"newsvendor"\nshortage = 3.0\nexcess = 1', '"cvxpy"', "line 8:.*--problem problem:prob"),
    ],
)
def test_a_problem_that_does_not_fit_the_columns(tmp_path, old, new, reported):
    plan = plan_of(tmp_path, PLAN.replace(old, new, 1))
    with pytest.raises(InvalidInputError, match=reported):
        plan.made_problem()


def test_there_is_no_plan_or_none_in_utf8(tmp_path):
    with pytest.raises(InvalidInputError, match="forewise init"):
        read_plan(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_bytes('x = "ü"'.encode("cp1252"))
    with pytest.raises(InvalidInputError, match="UTF-8"):
        read_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_is_proposed_is_a_plan(tmp_path, template):
    """And its comments hold keys that are right when they are switched on."""
    several = TEMPLATES[template].several
    table = fw.datasets.shop_demand(40)
    if several:
        table = table.pivot_table(index="date", columns=["store", "product"], values="sales")
        table = table.set_axis(["_".join(name) for name in table.columns], axis=1).reset_index()
    text = plan_text(propose(table, several), template, {}, "t.csv")
    if template == "portfolio":
        text = text.replace("expected_return = [0.05, 0.03]", "expected_return = 0.05")
    plan = plan_of(tmp_path, text)
    plan.require_columns(table, Path("t.csv"))
    assert len(plan.outcomes) == (6 if several else 1)
    assert plan.columns["date"] == "date"
    if template != "cvxpy":
        assert isinstance(plan.made_problem(), fw.Problem)
    switched = [
        line.removeprefix("# ") if line.startswith("# ") and " = " in line else line
        for line in text.splitlines()
    ]
    assert plan_of(tmp_path, "\n".join(switched)).planning["time_limit"] == 600


def test_a_budget_of_the_day_is_a_given_column(tmp_path):
    text = PLAN.replace('"sales"', '["bread", "cake"]').replace("known", "given")
    plan = plan_of(tmp_path, text.replace('"newsvendor"', '"budget"\nprice = 1\nbudget = "price"'))
    problem = plan.made_problem()
    rows = fw.solve(
        problem.bound({"price": [4.0, 100.0]}), fw.Scenarios([[[3.0, 5.0]], [[3.0, 5.0]]])
    )
    assert rows.decision.sum(1).tolist() == pytest.approx([4.0, 8.0], abs=1e-5)


def test_roles_are_read_from_the_names_and_the_cells():
    found = propose(fw.datasets.shop_demand(60))
    assert (found.outcome, found.date, found.series) == (["sales"], "date", ["store", "product"])
    assert found.known == ["price", "promotion", "temperature_forecast"]
    assert (found.sold_out, found.closed) == ("sold_out", "closed")
    assert found.unused == []
    table = pd.DataFrame({"Tag": ["01.02.2024", "02.02.2024"], "Absatz": ["1,5", "2,5"]})
    found = propose(table.assign(Temperatur=["3", "4"], Notiz=["", ""]))
    assert (found.outcome, found.date, found.known) == (["Absatz"], "Tag", [])
    assert found.unused == ["Temperatur", "Notiz"]
    plain = propose(pd.DataFrame({"x": [1.0, 2.0], "weight": [1, 2], "y": [3.0, 4.5]}))
    assert (plain.outcome, plain.date, plain.known) == (["y"], None, ["x", "weight"])


def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_to_decide.py").write_text(
        "import forewise as fw\nproblem = fw.Newsvendor(3, 1)\ndef make():\n    return problem\n"
        "other = 3\n"
    )
    for name in ("problem", "make"):
        assert isinstance(own_problem(f"mine_to_decide:{name}"), fw.Newsvendor)
    for place, reported in [
        ("mine_to_decide", "package.module:name"),
        ("mine_to_decide:nothing", "cannot be had"),
        ("no_such_module:problem", "cannot be had"),
        ("mine_to_decide:other", "is a int"),
    ]:
        with pytest.raises(InvalidInputError, match=reported):
            own_problem(place)
