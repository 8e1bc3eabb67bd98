"""Rolling evaluation: windows against brute force, and no way to see the future."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import forewise as fw
from forewise.evaluation import compare_rolling, evaluate_rolling, rolling_folds
from forewise.exceptions import InvalidInputError
from tests.predictors.interruption import interrupting

PROBLEM = fw.Newsvendor(shortage=3.0, excess=1.0)
LEARNER = fw.DecoupledLearner(PROBLEM, fw.GroupedPredictor("weekday"))


def shop(n_days=500, n_items=2, seed=0):
    """Demand by weekday that rises over time, two items a day, rows in any order."""
    random = np.random.default_rng(seed)
    days = np.repeat(pd.date_range("2022-01-05", periods=n_days), n_items)
    X = pd.DataFrame({"weekday": days.day_of_week, "item": np.tile(np.arange(n_items), n_days)})
    X.index = [f"row {i}" for i in range(len(X))]
    demand = 50 + 20.0 * X["weekday"] + np.arange(len(X)) / 50 + random.normal(0, 5, len(X))
    table = X.assign(demand=demand, date=days).sample(frac=1, random_state=seed)
    return table[["weekday", "item"]], table["demand"], table["date"]


def brute_windows(days, window):
    """Start and end of the windows of all days, by the calendar."""
    if window == "month":
        return days.strftime("%Y-%m")
    if window == "week":
        return (days - pd.to_timedelta(days.day_of_week, unit="D")).strftime("%Y-%m-%d")
    raise AssertionError(window)


@pytest.mark.parametrize("window", ["week", "month"])
@pytest.mark.parametrize("max_train_days", [None, 30])
def test_folds_are_whole_windows_with_the_past_before_them(window, max_train_days):
    _, _, dates = shop()
    folds = rolling_folds(dates, window, min_train_days=100, max_train_days=max_train_days)
    days = pd.DatetimeIndex(dates)
    names = np.asarray(brute_windows(days, window))
    first = days.min() + pd.Timedelta(days=100)
    whole = [name for name in np.unique(names) if days[names == name].min() >= first]
    assert len(folds) == len(whole)
    for number, (fold, name) in enumerate(zip(folds, whole, strict=True)):
        assert fold.number == number
        assert sorted(fold.decide) == np.flatnonzero(names == name).tolist()
        oldest = days.min() if max_train_days is None else fold.start - pd.Timedelta(days=30)
        before = (days < fold.start) & (days >= oldest)
        assert sorted(fold.train) == np.flatnonzero(before).tolist()
        assert days[fold.train].is_monotonic_increasing
        assert days[fold.decide].is_monotonic_increasing
        assert days[fold.train].max() < fold.start <= days[fold.decide].min()
        assert days[fold.decide].max() < fold.end


def test_folds_of_so_many_days():
    dates = pd.date_range("2024-01-01", periods=40)
    folds = rolling_folds(dates, window=7, min_train_days=10)
    assert [len(fold.decide) for fold in folds] == [7, 7, 7, 7, 2]
    assert [len(fold.train) for fold in folds] == [10, 17, 24, 31, 38]
    assert folds[0].start == pd.Timestamp("2024-01-11")
    days = pd.date_range("2023-01-02", "2024-12-31")
    quarters = rolling_folds(days, "quarter", min_train_days=30)
    assert [f"{fold.start:%m-%d}" for fold in quarters[:3]] == ["04-01", "07-01", "10-01"]
    years = rolling_folds(days, "year", min_train_days=30)
    assert [fold.start for fold in years] == [pd.Timestamp("2024-01-01")]


def test_windows_without_rows_are_left_out():
    dates = pd.date_range("2024-01-01", "2024-06-30")
    dates = dates[(dates.month != 4) & (dates.month != 5)]
    folds = rolling_folds(dates, "month", min_train_days=31)
    assert [fold.start.month for fold in folds] == [2, 3, 6]
    assert [fold.number for fold in folds] == [0, 1, 2]
    with pytest.raises(
        InvalidInputError, match=r"no row to train on in the 30 day\(s\) before 202"
    ):
        rolling_folds(dates, "month", min_train_days=31, max_train_days=30)


def test_costs_are_those_of_a_loop_by_hand():
    X, y, dates = shop()
    found = evaluate_rolling(LEARNER, X, y, dates, min_train_days=200, n_scenarios=500)
    for month, part in found.groupby(found["date"].dt.strftime("%Y-%m")):
        past = dates < f"{month}-01"
        mine = dates.dt.strftime("%Y-%m") == month
        assert sorted(part.index) == sorted(X.index[mine])
        assert (part["n_train"] == past.sum()).all()
        for weekday in range(7):
            same = past & (X["weekday"] == weekday)
            order = np.quantile(y[same], 0.75, method="inverted_cdf")
            rows = part.index[X.loc[part.index, "weekday"] == weekday]
            np.testing.assert_allclose(part.loc[rows, "decision_demand"], order)
            missing = y[rows] - order
            expected = 3 * missing.clip(lower=0) - missing.clip(upper=0)
            np.testing.assert_allclose(part.loc[rows, "cost"], expected)
    assert found["date"].is_monotonic_increasing
    assert (found["date"] == dates[found.index]).all()
    assert list(found.columns) == ["date", "fold", "n_train", "cost", "decision_demand"]
    assert not hasattr(LEARNER, "policy_"), "the learner itself is never fitted"


def test_the_future_changes_nothing_before_it():
    X, y, dates = shop()
    settings = {"min_train_days": 200, "max_train_days": 30}
    before = evaluate_rolling(LEARNER, X, y, dates, **settings)
    later = dates >= "2022-11-01"
    after = evaluate_rolling(LEARNER, X, y.where(~later, 1000 + 2 * y), dates, **settings)
    kept = before["date"] < "2022-11-01"
    pd.testing.assert_frame_equal(before[kept], after[kept])
    # In November the decisions are still those of the past; in December they are not.
    november = before["date"].dt.month == 11
    assert before.loc[november, "decision_demand"].equals(after.loc[november, "decision_demand"])
    december = before["date"].dt.month == 12
    assert (before.loc[december, "decision_demand"] < after.loc[december, "decision_demand"]).all()


def test_a_function_is_given_the_past_in_order():
    X, y, dates = shop()
    seen = []

    def last_value(past, outcomes):
        seen.append((past.index, outcomes.index))
        return lambda contexts: np.full(len(contexts), outcomes.iloc[-1])

    found = evaluate_rolling(last_value, X, y, dates, min_train_days=300, problem=PROBLEM)
    folds = rolling_folds(dates, "month", 300)
    assert len(seen) == len(folds) == found["fold"].nunique()
    for (rows, outcome_rows), fold in zip(seen, folds, strict=True):
        assert rows.equals(outcome_rows)
        assert rows.equals(X.index[fold.train])
        assert dates[rows].is_monotonic_increasing
    assert list(found.columns)[-1] == "decision_0"


def test_a_function_may_return_a_learner_or_a_policy():
    X, y, dates = shop()
    settings = {"min_train_days": 300, "problem": PROBLEM}
    by_learner = evaluate_rolling(lambda a, b: LEARNER.fit(a, b), X, y, dates, **settings)
    by_policy = evaluate_rolling(lambda a, b: LEARNER.fit(a, b).policy_, X, y, dates, **settings)
    directly = evaluate_rolling(fw.DecoupledLearner(PROBLEM, fw.GroupedPredictor("weekday")),
                                X, y, dates, min_train_days=300)  # fmt: skip
    pd.testing.assert_frame_equal(by_learner, directly)
    pd.testing.assert_frame_equal(by_policy, directly)


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor, list])
def test_arrays_tensors_and_lists(kind):
    X, y, dates = shop(n_days=150)
    learner = fw.DecoupledLearner(PROBLEM, fw.GroupedPredictor(0))
    frame = evaluate_rolling(learner, X, y, dates, min_train_days=60)
    plain = evaluate_rolling(
        learner,
        kind(X.to_numpy(dtype=float, copy=True)),
        kind(y.to_numpy(copy=True)),
        dates.to_numpy(),
        min_train_days=60,
    )
    np.testing.assert_allclose(plain["cost"], frame["cost"])
    assert X.index[plain.index].equals(frame.index)


def test_several_outcomes():
    X, y, dates = shop()
    both = pd.DataFrame({"bread": y, "rolls": 2 * y})
    problem = fw.QuadraticNewsvendor([1.0, 1.0], 0.0, 1.0, 90.0, 1.0, 1.0, [1.0, 1.0], 150.0)
    learner = fw.DecoupledLearner(problem, fw.GroupedPredictor("weekday"))
    found = evaluate_rolling(learner, X, both, dates, min_train_days=400, n_scenarios=8)
    assert list(found.columns)[-2:] == ["decision_bread", "decision_rolls"]
    assert (found.filter(like="decision_").sum(axis=1) <= 150 + 1e-6).all()


class Recording(fw.DecoupledLearner):
    """A learner that remembers which rows it was given."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, X_val=None, y_val=None):
        Recording.seen.append((X.index, None if X_val is None else X_val.index))
        return super().fit(X, y, X_val, y_val)


def test_validation_rows_are_the_last_days():
    X, y, dates = shop(n_days=200)
    brief = fw.PointPredictor((4,), training=fw.Training(epochs=1), random_state=0)
    settings = {"min_train_days": 100, "validation_days": 20}
    Recording.seen.clear()
    with pytest.warns(UserWarning, match="uncertainty cannot change"):
        evaluate_rolling(Recording(fw.Newsvendor(1.0, 1.0), brief), X, y, dates, **settings)
    folds = rolling_folds(dates, "month", 100)
    assert len(Recording.seen) == len(folds)
    for (rows, validation), fold in zip(Recording.seen, folds, strict=True):
        border = fold.start - pd.Timedelta(days=20)
        assert dates[rows].max() < border <= dates[validation].min()
        assert dates[validation].max() < fold.start
        assert len(rows) + len(validation) == len(fold.train)
    # What has no use for validation rows trains on them.
    Recording.seen.clear()
    found = evaluate_rolling(
        Recording(PROBLEM, fw.GroupedPredictor("weekday")), X, y, dates, **settings
    )
    assert all(validation is None for _, validation in Recording.seen)
    assert [len(rows) for rows, _ in Recording.seen] == found.groupby("fold")[
        "n_train"
    ].first().tolist()


def test_one_month_of_training():
    X, y, dates = shop()
    found = evaluate_rolling(LEARNER, X, y, dates, min_train_days=100, max_train_days=30)
    assert (found["n_train"] == 60).all()


def test_methods_side_by_side():
    X, y, dates = shop()
    tables = {
        name: evaluate_rolling(fw.DecoupledLearner(PROBLEM, predictor), X, y, dates)
        for name, predictor in (
            ("all days", fw.EmpiricalPredictor()),
            ("by weekday", fw.GroupedPredictor("weekday")),
        )
    }
    found = compare_rolling(tables, baseline="all days", n_resamples=200)
    assert list(found.index) == ["by weekday", "all days"]
    for name, table in tables.items():
        row = found.loc[name]
        assert row["cost"] == pytest.approx(table["cost"].mean())
        assert row["cost_lower"] < row["cost"] < row["cost_upper"]
    best, worst = found.loc["by weekday"], found.loc["all days"]
    assert best["difference"] == pytest.approx(best["cost"] - worst["cost"])
    assert best["relative"] == pytest.approx(best["cost"] / worst["cost"] - 1)
    assert best["difference_upper"] < 0
    assert worst[["difference_lower", "difference_upper", "relative"]].tolist() == [0, 0, 0]
    with pytest.raises(InvalidInputError, match="baseline must be one of"):
        compare_rolling(tables, baseline="nothing")
    short = tables | {"by weekday": tables["by weekday"].iloc[1:]}
    with pytest.raises(InvalidInputError, match="same rows, but those of 'by weekday'"):
        compare_rolling(short, baseline="all days")


def test_too_short_a_past_is_reported():
    """A shop with 20 rows cannot be evaluated with a year of training."""
    X, y, dates = shop(n_days=20, n_items=1)
    with pytest.raises(InvalidInputError, match=r"no month begins after min_train_days=365 .* 20"):
        evaluate_rolling(LEARNER, X, y, dates)
    found = evaluate_rolling(
        fw.DecoupledLearner(PROBLEM, fw.EmpiricalPredictor()),
        X, y, dates, window=5, min_train_days=10,
    )  # fmt: skip
    assert len(found) == 10


def evaluated(**changes):
    X, y, dates = shop()
    arguments = {"method": LEARNER, "X": X, "y": y, "dates": dates, **changes}
    return evaluate_rolling(**arguments)


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"window": "fortnight"}, "window must be one of 'week', 'month', .* but is 'fortnight'"),
        ({"window": 0}, "window must be one of"),
        ({"window": True}, "window must be one of"),
        ({"min_train_days": 0}, "min_train_days must be .* but is 0"),
        ({"max_train_days": 0.5}, "max_train_days must be"),
        ({"dates": np.arange(1000)}, "dates must be days without a time zone, .* of type int64"),
        ({"dates": []}, "dates must be days without a time zone, at least one"),
        ({"dates": ["Monday"] * 1000}, "dates must be days, but are not"),
        ({"dates": np.full(1000, np.datetime64("NaT", "D"))}, "dates must have a day in every row"),
        ({"dates": pd.date_range("2022-01-01", periods=5)}, "the same rows, but have"),
        ({"method": fw.EmpiricalPredictor()}, r"a predictor becomes a learner by DecoupledLearner"),
        ({"method": lambda X, y: None}, "problem must be given for a method that is a function"),
        ({"method": lambda X, y: 3, "problem": PROBLEM}, "but returned a int"),
        ({"problem": fw.Newsvendor(1.0, 1.0)}, "problem must be left out for a learner"),
        (
            {"method": fw.DecoupledLearner(PROBLEM), "validation_days": 5000},
            "validation_days=5000 leaves no row to train on before 2023-02-01",
        ),
    ],
)
def test_bad_input_is_named(changes, reported):
    with pytest.raises(InvalidInputError, match=reported):
        evaluated(**changes)


def test_ctrl_c_ends_the_whole_evaluation(monkeypatch):
    """No window is evaluated with a method that was trained for less long than the others."""
    training = fw.Training(epochs=2, batch_size=256)
    network = fw.PointPredictor((4,), training=training, random_state=0)
    interrupting(monkeypatch, after=3)  # in the second window
    with pytest.raises(KeyboardInterrupt):
        evaluate_rolling(fw.DecoupledLearner(PROBLEM, network), *shop(200), min_train_days=100)
