"""Messy tables, from the file to the policy: read as meant, or refused with row and column."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise import cli
from forewise.cli import learn
from tests.cli.conftest import run

PLAN = """\
[columns]
outcome = "sales"
date = "date"
series = ["store"]
known = ["price", "promotion"]
closed = "closed"
[problem]
template = "newsvendor"
shortage = 3
excess = 1
"""
DAYS = 40


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One method in the place of all."""
    made = learn.planner_of

    def planner_of(*arguments, **options):
        return made(*arguments, **options).set_params(learner=fw.NeighborPredictor(5))

    monkeypatch.setattr(learn, "planner_of", planner_of)


@pytest.fixture
def rows():
    """Two stores as text, as a spreadsheet might have them."""
    random = np.random.default_rng(0)
    days = pd.date_range("2024-03-04", periods=DAYS)
    table = pd.DataFrame([(day, store) for day in days for store in ("Süd", "North")])
    table.columns = ["date", "store"]
    table["price"] = [f"{p:.2f}" for p in random.uniform(1, 3, len(table))]
    table["promotion"] = random.choice(["ja", "nein"], len(table))
    table["closed"] = np.where(table["date"].dt.day_of_week == 6, "x", "")
    table["sales"] = [f"{s:.1f}" for s in random.gamma(9, 4, len(table))]
    table["date"] = table["date"].dt.strftime("%Y-%m-%d")
    return table


def german(path, table):
    """Semicolons, decimal commas, a BOM, CRLF."""
    cells = table.copy()
    for name in ("price", "sales"):
        cells[name] = cells[name].str.replace(".", ",")
    cells.to_csv(path, index=False, sep=";", encoding="utf-8-sig", lineterminator="\r\n")


def fit(folder, monkeypatch, capsys):
    """The exit code, and what was said as an error."""
    (folder / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["forewise", "fit", "t.csv"])
    try:
        cli.main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    else:
        code = 0
    reported = capsys.readouterr()
    assert "Traceback" not in reported.err
    return code, reported.err if code else reported.out


def test_every_spelling_makes_the_same_decisions(tmp_path, rows, monkeypatch, capsys):
    decisions = []
    for form in ("plain", "german", "latin"):
        folder = tmp_path / form
        folder.mkdir()
        table = rows.copy()
        table.loc[5:9, "price"] = ""
        if form == "german":
            spellings = ["%d.%m.%Y", "%Y-%m-%d", "%Y/%m/%d"]
            moments = pd.to_datetime(table["date"])
            table["date"] = [m.strftime(spellings[i % 3]) for i, m in enumerate(moments)]
            german(folder / "t.csv", table)
        else:
            encoding = "utf-8" if form == "plain" else "cp1252"
            table.sample(frac=1, random_state=1).to_csv(
                folder / "t.csv", index=False, encoding=encoding
            )
        assert fit(folder, monkeypatch, capsys)[0] == 0
        ahead = pd.DataFrame({"date": "2024-04-13", "store": ["Süd", "North"], "price": "2.5"})
        ahead = ahead.assign(promotion="ja", closed="")
        if form == "german":
            german(folder / "tomorrow.csv", ahead.assign(sales=""))
        else:
            ahead.to_csv(folder / "tomorrow.csv", index=False)
        run("decide", "policy", "t.csv", "--future", "tomorrow.csv", "-o", "orders.csv")
        decisions.append(pd.read_csv("orders.csv")["decision"].to_numpy())
    np.testing.assert_allclose(decisions[1], decisions[0], rtol=1e-6)
    np.testing.assert_allclose(decisions[2], decisions[0], rtol=1e-6)


def changed(rows, row, column, value):
    """A table with another cell; the row as the file has it, the header being row 1."""
    table = rows.copy()
    table.loc[row - 2, column] = value
    return table


@pytest.mark.parametrize(
    ("row", "column", "value", "reported"),
    [
        (17, "sales", "many", "t.csv: column 'sales'.*row 17 has 'many'"),
        (23, "price", "2.5 EUR", "t.csv: column 'price'.*row 23 has '2.5 EUR'"),
        (9, "date", "someday", "t.csv: column 'date'.*row 9 has 'someday'"),
        (9, "date", "", "t.csv: column 'date'.*row 9"),
        (9, "store", "", "t.csv: column 'store'.*row 9"),
        (9, "date", "2024-03-04", "t.csv: table must have one row.*row 9 repeats 2024-03-04 of"),
        (9, "sales", "inf", "t.csv: column 'sales'.*row 9 has 'inf'"),
        (9, "closed", "perhaps", "t.csv: column 'closed'.*row 9 has 'perhaps'"),
    ],
)
def test_a_cell_that_is_none_is_reported(
    tmp_path, rows, monkeypatch, capsys, row, column, value, reported
):
    changed(rows, row, column, value).to_csv(tmp_path / "t.csv", index=False)
    code, said = fit(tmp_path, monkeypatch, capsys)
    assert code == 1
    assert re.search(reported, said)
    assert not (tmp_path / "policy").exists()


def test_missing_outcomes_gaps_and_few_rows(tmp_path, rows, monkeypatch, capsys):
    table = changed(rows, 9, "sales", "").drop(index=[20, 21, 22, 23, 30])
    table.to_csv(tmp_path / "t.csv", index=False)
    code, said = fit(tmp_path, monkeypatch, capsys)
    assert code == 0, said
    assert "1 rows are without an outcome" in said.replace("\n", " ")


@pytest.mark.parametrize(("n", "reported"), [(0, "a header and nothing below"), (1, "t.csv")])
def test_too_few_rows_are_reported(tmp_path, rows, monkeypatch, capsys, n, reported):
    rows.head(n).to_csv(tmp_path / "t.csv", index=False)
    code, said = fit(tmp_path, monkeypatch, capsys)
    assert code == 1
    assert reported in said


def test_a_new_category_is_decided_and_reported(tmp_path, rows, monkeypatch, capsys):
    rows.to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path, monkeypatch, capsys)[0] == 0
    ahead = pd.DataFrame({"date": ["2024-04-13"], "store": "Nord-West", "price": "2.5"})
    ahead.assign(promotion="nein", closed="").to_csv("tomorrow.csv", index=False)
    monkeypatch.setattr(
        sys, "argv", ["forewise", "decide", "policy", "t.csv", "--future", "tomorrow.csv"]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    reported = capsys.readouterr()
    assert "'Nord-West'" in reported.err.replace("\n", "")
    assert "no past of this series" in reported.out.replace("\n", " ")
