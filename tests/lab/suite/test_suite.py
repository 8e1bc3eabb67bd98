"""The suite on a tiny table: costs, rows that are kept, settings in names, and the page."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import forewise as fw
from forewise.exceptions import InvalidInputError, MissingDataError
from forewise.predictors import ForestPredictor
from forewise_lab import cli
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.fits import Setting, make_evaluation
from forewise_lab.experiments.rows import read_rows
from forewise_lab.suite import run_suite
from forewise_lab.suite.fits import LEVELS, SuiteFit, budget_cost, level_cost, real_tables
from forewise_lab.suite.methods import METHODS, cliff_methods, config_hash, make_method
from forewise_lab.suite.page import write_suite_page


@pytest.fixture
def data_dir(tmp_path):
    """Two tables of 60 rows with two splits; outcomes of one are all negative."""
    random = np.random.default_rng(0)
    for name, shift in (("low", -50.0), ("high", 5.0)):
        X = random.normal(size=(60, 2))
        y = shift + X[:, 0] + 0.3 * random.normal(size=60)
        folder = tmp_path / "data" / "uci" / name
        folder.mkdir(parents=True)
        for file, values in (("data", np.c_[X, y]), ("test_mask", random.random((60, 2)) < 0.2)):
            with gzip.open(folder / f"{file}.csv.gz", "wt") as target:
                np.savetxt(target, values, delimiter=",")
    return tmp_path / "data"


def test_the_cost_is_the_pinball_loss_of_quantiles():
    random = np.random.default_rng(1)
    values, weights = random.normal(-3.0, 2.0, (7, 20)), random.random((7, 20))
    weights /= weights.sum(axis=1, keepdims=True)
    y = random.normal(-3.0, 2.0, (7, 1))
    losses = []
    for level in LEVELS:
        for v, w, seen in zip(values, weights, y[:, 0], strict=True):
            order = np.argsort(v)
            quantile = v[order][np.searchsorted(w[order].cumsum(), level)]
            losses.append(max(level * (seen - quantile), (level - 1) * (seen - quantile)))
    scenarios = fw.Scenarios(values[:, :, None], weights)
    assert float(level_cost(scenarios, torch.from_numpy(y))) == pytest.approx(np.mean(losses))


def test_costs_scale_and_shift_with_the_outcome():
    random = np.random.default_rng(2)
    values, y = random.normal(size=(9, 64, 1)), torch.from_numpy(random.normal(size=(9, 1)))
    past = random.normal(size=(40, 1))
    cost, budget = (
        level_cost(fw.Scenarios(values), y),
        budget_cost(fw.Scenarios(values), y, past),
    )
    for scale in (1e-8, 1e8):
        moved = fw.Scenarios(scale * (values + 3.0))
        assert float(level_cost(moved, scale * (y + 3.0))) == pytest.approx(scale * float(cost))
        again = budget_cost(moved, scale * (y + 3.0), scale * (past + 3.0))
        assert float(again) == pytest.approx(float(budget), rel=1e-6)


def test_a_budget_is_shared_by_three_products():
    """Against the program solved by Clarabel on the same equally likely scenarios."""
    random = np.random.default_rng(3)
    values = np.sort(random.random((6, 64, 1)), axis=1)
    past = np.array([[0.0], [0.3], [1.0]])
    y = torch.from_numpy(random.random((7, 1)))[:6]
    problem = fw.QuadraticNewsvendor(
        *(0.0, [0.0] * 3, 0.9, 0.9, 0.1, 0.1), price=1.0, budget=3 * past.mean()
    )
    demand = torch.from_numpy(values[:, :, 0].reshape(2, 3, 64)).transpose(1, 2)
    solution = fw.solve(problem, fw.Scenarios(demand), solver=fw.ReferenceSolver())
    expected = problem.cost(solution.decision, y[:, 0].reshape(2, 3)).mean()
    found = budget_cost(fw.Scenarios(values), y, past)
    assert float(found) == pytest.approx(float(expected), rel=1e-6)
    with pytest.raises(InvalidInputError, match="at least 3"):
        budget_cost(fw.Scenarios(values[:2]), y[:2], past)


def test_rows_are_kept_and_found_again(data_dir, tmp_path):
    out = tmp_path / "out"
    summary = run_suite(["forest", "neighbours"], ["low", "high"], [0, 1], output=out,
                        data_dir=data_dir, progress=False)  # fmt: skip
    assert (summary.computed, summary.rows, summary.failed) == (8, 32, {})
    rows = read_rows(out)
    assert set(rows["metric"]) == {"cost", "budget", "CRPS", "coverage90"}
    assert rows["value"].notna().all()
    again = run_suite(["forest", "forest:n_trees=10"], ["low"], [0], output=out,
                      data_dir=data_dir, progress=False)  # fmt: skip
    assert (again.found, again.computed) == (1, 1)


def test_shifting_the_outcome_changes_nothing_but_the_fit(data_dir):
    """The costs of negative outcomes are as small as those of positive ones."""
    where = SuiteFit("linear-residuals", "low", 0, data_dir=data_dir)
    train, held = where.rows()
    found = where.evaluate(where.fit(train), train, held)
    assert found["cost"] < 0.2
    assert found["CRPS"] < 0.5


@pytest.mark.slow
def test_auto_learner_is_evaluated_as_the_others(data_dir, tmp_path):
    run_suite(["auto"], ["low"], [0], output=tmp_path, data_dir=data_dir, progress=False)
    values = read_rows(tmp_path).set_index("metric")["value"]
    assert values["cost"] < 0.2
    assert set(values.index) == {"cost", "budget", "CRPS", "coverage90"}


def test_inner_folds_do_not_touch_the_test_rows(data_dir):
    test = {tuple(row) for row in SuiteFit("forest", "low", 1, data_dir=data_dir).rows()[1].X}
    train, held = SuiteFit("forest", "low", 1, inner=True, data_dir=data_dir).rows()
    parts = [{tuple(row) for row in part.X} for part in (train, held)]
    assert not test & (parts[0] | parts[1])
    assert not parts[0] & parts[1]
    assert held.n_contexts == (train.n_contexts + held.n_contexts) // 5


def test_settings_in_names():
    changed = make_method("bayesian:n_members=8:defaults.epochs=5:embedding.clip=1.5")
    assert (changed.n_members, changed.defaults.epochs, changed.embedding.clip) == (8, 5, 1.5)
    assert type(changed).defaults.epochs != 5  # only of this one
    with pytest.raises(InvalidInputError, match="no setting 'n_member'"):
        make_method("bayesian:n_member=8")
    with pytest.raises(InvalidInputError, match="must be like"):
        make_method("bayesian:n_members=")
    with pytest.raises(InvalidInputError, match="did you mean forest"):
        make_method("forrest")


@pytest.mark.parametrize("name", METHODS)
def test_every_number_is_halved_and_doubled(name):
    names = cliff_methods(name)
    assert len(set(names)) == len(names)
    for changed in names:
        make_method(changed)
    if name == "forest":
        assert {"forest:n_trees=50", "forest:n_trees=200"} <= set(names)


def test_a_changed_default_is_used(data_dir):
    train, _ = SuiteFit("forest", "high", 0, data_dir=data_dir).rows()
    fitted = make_method("bayesian:defaults.epochs=3:hidden_sizes=(4, 4)").fit(train.X, train.y)
    assert len(fitted.history_) == 3


def test_the_key_changes_with_the_code(monkeypatch):
    """Of the files behind the method; comments and docstrings do not matter."""
    hashes = {name: config_hash(name) for name in METHODS}
    assert len(set(hashes.values())) == len(METHODS)

    def changed(old, new):
        read = Path.read_text
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", lambda *a, **k: read(*a, **k).replace(old, new))
            config_hash.cache_clear()
            found = {name for name in METHODS if config_hash(name) != hashes[name]}
        config_hash.cache_clear()
        return found

    assert changed("Past outcomes, weighted by", "Outcomes, weighted by") == set()
    networks = {"bayesian", "bayesian-ensemble"}
    assert changed("frequency_scale: float = 0.3", "frequency_scale: float = 0.4") == networks
    assert changed("n_restarts: int = 0", "n_restarts: int = 1") == {"gaussian-process"}


def test_fair_regret_is_that_of_the_papers_experiments():
    where, table = SuiteFit("forest", "nv1", 0), load_settings().experiments["nv1"]
    train, test = where.rows()
    predictor = ForestPredictor(n_trees=5, random_state=0, n_jobs=1).fit(train.X, train.y)
    found = where.evaluate(predictor, train, test)
    setting = Setting(table.dataset, table.problem, table.oracle, 0, train.n_contexts)
    evaluation = make_evaluation(setting)
    scenarios = predictor.sample(test.X, 64, random_state=0)
    decision = fw.solve(evaluation.problem, scenarios).decision.numpy()
    assert found == pytest.approx(evaluation.metrics(decision, scenarios, where.metrics))


def test_names_of_tables_are_checked(data_dir, tmp_path):
    assert sorted(real_tables(data_dir)) == ["high", "low"]
    with pytest.raises(MissingDataError, match="data-dir"):
        real_tables(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match="no table named 'hihg'; did you mean high"):
        SuiteFit("forest", "hihg", 0, data_dir=data_dir).rows()
    with pytest.raises(InvalidInputError, match="splits of low must be below 2"):
        SuiteFit("forest", "low", 2, data_dir=data_dir).rows()


def test_the_command_line_runs_and_reports(data_dir, tmp_path):
    place = ["--output", str(tmp_path / "out")]
    where = ["--tables", "low,high", "--data-dir", str(data_dir), *place]
    runner = CliRunner()
    run = ["suite", "run", "--splits", "2", *where, "--methods"]
    assert runner.invoke(cli.app, [*run, "forest,neighbours,boosted-residuals"]).exit_code == 0
    steep = runner.invoke(cli.app, [*run, "forest", "--cliff"])
    assert steep.exit_code == 0
    assert runner.invoke(cli.app, [*run, "forest:max_features=2.0"]).exit_code == 1
    assert runner.invoke(cli.app, ["suite", "report", *place]).exit_code == 0
    page = (tmp_path / "out" / "report.md").read_text()
    for words in (
        "cost / forest",
        "CRPS / forest",
        "`n_trees=50`",
        "Failed: forest:max_features=2.0, 4 fits",
    ):
        assert words in page
    assert (tmp_path / "out" / "report.png").stat().st_size > 1000
    assert cli._names("a:sizes=(1, 2),b") == ["a:sizes=(1, 2)", "b"]


def test_the_page_takes_the_newest_rows_and_shared_splits(tmp_path):
    rows = []
    costs = {("a", 0): (2.0, 1.0), ("a", 1): (2.0, 4.0), ("b", 0): (8.0, 2.0), ("c", 0): (1.0, 0.5)}
    for (table, split), (forest, other) in costs.items():
        rows += [(table, "forest", split, forest, "x"), (table, "RealMLP", split, 9.0, "old")]
        rows.append((table, "RealMLP", split, other, "new"))
    rows.append(("a", "forest", 2, 100.0, "x"))  # a split that the other does not have
    rows.append(("a", "NGBoost", 7, 1.0, "x"))
    fixed = {"n_train": 9, "m_train": 0, "m": 64, "seconds": 1.0, "note": None, "quick": False}
    keys = ("experiment", "method", "seed", "value", "config_hash")
    lines = [
        json.dumps(dict(zip(keys, row, strict=True)) | fixed | {"metric": metric})
        for row in rows
        for metric in ("cost", "coverage90")
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    page = write_suite_page(tmp_path, tmp_path / "page.md", ["forest", "nobody"]).read_text()
    # Means of table a: 2.5 and 2; then 0.25 and 0.5: the cube root of 1.25 / 8.
    assert "| RealMLP | 3 | 1.077 | 0.539" in page
    assert "| RealMLP | 1.25 | **0.25** | **0.50** |" in page
    assert "other code than the present: forest, 5 fits" in page
    assert "Without a split that forest has: NGBoost" in page
    with pytest.raises(InvalidInputError, match="against must name"):
        write_suite_page(tmp_path, tmp_path / "page.md", ["nobody"])
