"""Cases that roll over time: what is learned from when, what is chosen, what is kept."""

from __future__ import annotations

import dataclasses
from datetime import date

import numpy as np
import pandas as pd
import pytest
import torch

from forewise.datasets import Dataset
from forewise.exceptions import InvalidInputError, MissingDataError
from forewise_lab.datasets.real import bakery_newsvendor, oven_problem
from forewise_lab.experiments import rolling, runner
from forewise_lab.experiments.cases import decide_rows, fit_trial, trials_of
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.kinds import Solvers
from forewise_lab.experiments.methods import Task, foresight_rule
from forewise_lab.experiments.rolling import (
    CaseGrid,
    evaluation_windows,
    pack_costs,
    read_costs,
    train_and_decide,
    tuning_window,
)
from forewise_lab.experiments.rows import compute, read_rows
from forewise_lab.experiments.runner import run
from tests.lab.experiments.made_up_data import TEXT, case_of, load_made_up, shops
from tests.lab.experiments.tiny import comparable, write


@pytest.fixture
def settings(tmp_path):
    return load_settings(write(tmp_path, TEXT))


@pytest.fixture(autouse=True)
def _made_up(monkeypatch):
    monkeypatch.setattr(rolling, "load_case", load_made_up)


def go(settings, folder, methods=None):
    return run("shops", methods, settings=settings, output=folder, progress=False)


def windows_of(settings, method):
    grid = CaseGrid(settings, ["shops"], [method], [0])
    return grid.windows(()) or grid.trials()


def test_windows_follow_each_other_and_the_tuning_days_come_before(settings):
    first, second = evaluation_windows(case_of(settings))
    assert (first.start, first.end) == (date(2020, 8, 1), date(2020, 9, 1))
    assert (second.start, second.end) == (date(2020, 9, 1), date(2020, 9, 16))
    tuning = tuning_window(case_of(settings))
    assert (tuning.start, tuning.end) == (date(2020, 7, 2), first.start)


def test_nothing_of_a_window_or_later_is_learned_from(settings):
    rows = shops()
    for fit in CaseGrid(settings, ["shops"], None, [0]).trials():
        learned, decided = train_and_decide(fit, rows)
        assert rows.days[learned].max() < np.datetime64(fit.window.start)
        assert rows.days[decided].min() == np.datetime64(fit.window.start)
        assert rows.days[decided].max() < np.datetime64("2020-08-01")
        history = fit.trial.rolling.history_days
        if history is not None:
            first = rows.days[decided].min() - np.timedelta64(history, "D")
            assert rows.days[learned].min() >= first


def test_the_future_does_not_change_decisions(settings):
    fit = windows_of(settings, "bnn")[0]
    rows = shops()
    learned, decided = train_and_decide(fit, rows)
    changed = dataclasses.replace(rows, y=rows.y.copy())
    changed.y[decided[0] :] += 1000.0
    problems = {"0.9": bakery_newsvendor(0.9)}
    made = []
    for version in (rows, changed):
        rules = fit_trial(fit.trial, version, learned, decided, problems, fit.case, 0)
        made.append(decide_rows(rules["0.9"], fit.trial, version, decided, fit.case, 0))
    assert np.array_equal(*made)


def test_a_run_tunes_judges_and_keeps_costs(settings, tmp_path, monkeypatch):
    folder = tmp_path / "results"
    summary = go(settings, folder)
    # Four methods have two trials, all six have two windows.
    assert (summary.computed, summary.failed) == (4 * 2 + 6 * 2, {})
    rows = read_rows(folder)
    tried = rows[rows["metric"] == "validation"]
    assert (tried["fold"] == -1).all()
    decided = rows[rows["fold"] >= 0]
    assert set(decided["metric"]) == {"cost", "cost 0.25", "cost 0.9"}
    for method, own in tried.groupby("method"):
        best = own.sort_values("value")["trial"].iloc[0]
        assert set(decided.loc[decided["method"] == method, "trial"]) == {best}
    for _, row in decided[decided["metric"] == "cost"].iterrows():
        costs = read_costs(folder / row["costs_file"])
        assert len(costs) == row["n_decided"]
        assert list(costs.columns) == ["date", "series", "0.25", "0.9"]
        assert costs[["0.25", "0.9"]].to_numpy().mean() == pytest.approx(row["value"], rel=1e-3)
    before = (folder / "rows.jsonl").read_bytes()
    monkeypatch.setattr(runner, "compute", None)  # would raise if called
    assert go(settings, folder).computed == 0
    assert (folder / "rows.jsonl").read_bytes() == before


def test_rows_that_are_missing_are_added(settings, tmp_path):
    go(settings, tmp_path / "whole", ["weekday", "bnn"])
    go(settings, tmp_path / "part", ["weekday"])
    lines = (tmp_path / "part" / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "part" / "rows.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    go(settings, tmp_path / "part", ["weekday", "bnn"])
    pd.testing.assert_frame_equal(comparable(tmp_path / "part"), comparable(tmp_path / "whole"))


def test_a_model_per_series_knows_its_own_rows_only(settings):
    rows = shops()
    trial = trials_of(settings, "shops", "bnn-each")[0]
    places = np.flatnonzero(rows.days < np.datetime64("2020-07-01"))
    problems = {"0.9": bakery_newsvendor(0.9)}
    rules = fit_trial(trial, rows, places, places, problems, case_of(settings), 0)["0.9"]
    assert len(rules) == 3
    changed = dataclasses.replace(rows, y=np.where(rows.series[:, None] == 0, 999.0, rows.y))
    again = fit_trial(trial, changed, places, places, problems, case_of(settings), 0)["0.9"]
    ahead = np.flatnonzero(rows.days == np.datetime64("2020-07-04"))
    before, after = (
        decide_rows(made, trial, rows, ahead, case_of(settings), 0) for made in (rules, again)
    )
    assert np.array_equal(before[1:], after[1:])
    assert not np.array_equal(before[:1], after[:1])


def test_foresight_is_judged_in_the_same_windows(tmp_path):
    text = TEXT.replace('"c-bnn"]', '"c-bnn", "foresight"]')
    go(load_settings(write(tmp_path, text)), tmp_path / "rows", ["saa", "foresight"])
    rows = read_rows(tmp_path / "rows")
    rows = rows[rows["metric"] == "cost"].set_index(["method", "fold"])
    for fold in (0, 1):
        known, plain = (
            read_costs(tmp_path / "rows" / rows.loc[(method, fold), "costs_file"])
            for method in ("foresight", "saa")
        )
        assert known[["date", "series"]].equals(plain[["date", "series"]])
        assert known[["0.25", "0.9"]].to_numpy().max() == 0  # all demand is met, no more
        assert plain[["0.25", "0.9"]].to_numpy().mean() > 1


@pytest.mark.parametrize("cvar", [None, 0.9])
def test_nobody_pays_less_than_who_knows_the_future(cvar):
    random = np.random.default_rng(0)
    problem, y = oven_problem(cvar=cvar), random.gamma(2.0, 18.0, (200, 3))
    test = Dataset(np.zeros((200, 1)), y, ["x"], ["a", "b", "c"])
    task = Task(problem, test, test, test, 1, 0, Solvers())
    decided = torch.from_numpy(foresight_rule(task).decide(test.X, 1, 0))
    plain, seen = oven_problem(), torch.from_numpy(y)
    assert float((decided.sum(1) - 100).max()) <= 1e-6
    least = plain.cost(decided, seen)
    assert float(least.mean()) > 1  # the oven is too small now and then
    for _ in range(50):
        other = torch.from_numpy(y * random.uniform(0.8, 1.1, (200, 3)))
        other = other * (100 / other.sum(1, keepdim=True)).clamp_max(1)
        assert (plain.cost(other, seen) >= least - 1e-6).all()


def test_a_young_series_borrows_from_the_others(settings):
    rows = shops()
    trial = trials_of(settings, "shops", "bnn-each")[0]
    young = (rows.series == 2) & (rows.days < np.datetime64("2020-06-20"))
    places = np.flatnonzero((rows.days < np.datetime64("2020-07-01")) & ~young)
    problems = {"a": bakery_newsvendor(0.5)}
    rules = fit_trial(trial, rows, places, places, problems, case_of(settings), 0)
    assert len(rules["a"]) == 3


def test_plain_saa_is_the_quantile_of_the_series(settings):
    rows = shops()
    fit = windows_of(settings, "saa")[0]
    learned, decided = train_and_decide(fit, rows)
    rules = fit_trial(fit.trial, rows, learned, decided, {"a": bakery_newsvendor(0.9)}, fit.case, 0)
    case = fit.case.model_copy(update={"m": 10_000})
    found = decide_rows(rules["a"], fit.trial, rows, decided, case, 0)[:, 0]
    for s in range(3):
        own = rows.y[learned][rows.series[learned] == s, 0]
        expected = np.quantile(own, 0.9, method="inverted_cdf")
        assert found[rows.series[decided] == s] == pytest.approx(expected)


def test_infeasible_decisions_are_not_scored(tmp_path):
    text = TEXT.replace('"c-bnn"]\n', '"c-bnn", "negative"]\n')
    settings = load_settings(write(tmp_path, text))
    summary = go(settings, tmp_path / "results", ["negative"])
    assert summary.computed == 2
    assert all("must meet the constraints" in reported for reported in summary.failed.values())


def test_costs_survive_their_file(tmp_path):
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    costs = {"0.5": torch.tensor([1234.5678, 0.0]), "0.9": torch.tensor([1e-3, 7.0])}
    path = tmp_path / "costs.npz"
    path.write_bytes(pack_costs(days, np.array([3, 4]), costs))
    table = read_costs(path)
    assert table["series"].tolist() == [3, 4]
    assert (table["date"].to_numpy().astype("datetime64[D]") == days).all()
    for name, cost in costs.items():
        assert table[name].to_numpy() == pytest.approx(cost.numpy(), rel=5e-4)


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ('evaluation = "rolling"', 'evaluation = "shuffled"', "evaluation: Input should be"),
        ("levels = [0.25, 0.9]", "levels = []", "levels belong to the newsvendor"),
        ("last_day = 2020-09-15", "last_day = 2020-07-15", "first_day must not be after last_day"),
        ('name = "bakery-series"', 'name = "cake"', "must be one of bakery-series"),
        ('"weekday", "residual"', '"weekdays", "residual"', "did you mean weekday"),
        ("history_days = 200", "history_dais = 200", "trial 0: .*history_dais"),
        ('regressor = { kind = "boosting"', 'regressor = { kind = "ridge"', "regressor: kind must"),
        ("{ training = { epochs = 8 } }", "{ training = { epoch = 8 } }", "trial 1: .*epochs"),
    ],
)
def test_mistakes_are_reported(tmp_path, old, new, reported):
    assert old in TEXT
    path = write(tmp_path, TEXT.replace(old, new))
    with pytest.raises(InvalidInputError, match=reported):
        CaseGrid(load_settings(path), ["shops"], None, [0])


def test_too_many_days_to_stop_on(settings):
    fit = windows_of(settings, "bnn")[0]
    long = fit.case.model_copy(update={"stopping_days": 900})
    result = compute(dataclasses.replace(fit, case=long))
    assert "stopping_days=900 leaves no row" in (result.error or "")


def test_missing_files_are_reported_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.undo()
    with pytest.raises(MissingDataError, match="bakery"):
        run("bakery-a", ["real-saa"], output=tmp_path / "results", data_dir=tmp_path)
    assert not (tmp_path / "results").exists()


def test_every_shipped_method_has_as_many_trials():
    shipped = load_settings()
    assert shipped.files["real"] == (
        *("bakery-a", "bakery-b", "bakery-c", "victoria", "bakery-b-few", "bakery-b-month"),
    )
    for name, case in shipped.cases.items():
        for method in case.methods:
            expected = 1 if method in ("real-saa", "real-default", "real-foresight") else 4
            assert len(trials_of(shipped, name, method)) == expected
