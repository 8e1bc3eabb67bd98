"""The portfolio of five indices: what its two protocols see, and known figures of the real data."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import forewise as fw
from forewise.datasets import CorruptDataError, locate
from forewise.exceptions import MissingDataError
from forewise_lab.datasets.cnnpred import INDICES, N_DAYS, TECHNICAL, pop2_paper, pop2_strict
from forewise_lab.datasets.paper import pop2_problem

SIZES = {pop2_paper: (800, 400, 784), pop2_strict: (799, 400, 784)}


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A folder with files of the right form and random content."""
    data_dir = tmp_path_factory.mktemp("made_up")
    (data_dir / "cnnpred").mkdir()
    generator = np.random.default_rng(0)
    dates = np.datetime64("2009-12-31") + np.arange(N_DAYS)
    common = [f"common{k}" for k in range(68)]
    shared = generator.normal(size=(N_DAYS, 68))
    for index in INDICES:
        returns = generator.normal(0, 0.01, N_DAYS)
        close = 1000 * np.cumprod(1 + returns)
        technical = generator.normal(size=(N_DAYS, len(TECHNICAL)))
        technical[:, 1] = returns
        # `common0` is the day's return of the first index, in disguise.
        if index == INDICES[0]:
            shared[:, 0] = returns + generator.normal(0, 0.005, N_DAYS)
        rows = [",".join(["Date", "Close", *TECHNICAL, "Name", *common])]
        for day in range(N_DAYS):
            values = [f"{v:.6g}" for v in (*technical[day], *shared[day])]
            values[len(TECHNICAL) :] = [index, *values[len(TECHNICAL) :]]
            if day < 3:
                values[0] = ""
            rows.append(",".join([str(dates[day]), f"{close[day]:.9g}", *values]))
        (data_dir / "cnnpred" / f"Processed_{index}.csv").write_text("\n".join(rows) + "\n")
    return data_dir


@pytest.fixture
def copy(made_up, tmp_path):
    """A copy of the made-up data that a test may spoil."""
    shutil.copytree(made_up, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def real():
    """The real data's folder, or a skipped test."""
    try:
        return locate("cnnpred").parent
    except MissingDataError as error:
        pytest.skip(f"the real data are not here: {error}")


@pytest.fixture(scope="module")
def real_paper(real):
    return pop2_paper(real)


@pytest.fixture(scope="module")
def real_strict(real):
    return pop2_strict(real)


def rewrite(data_dir, index, change):
    """Change the lines of a file; line 0 is the header, line t + 1 is day t."""
    path = data_dir / "cnnpred" / f"Processed_{index}.csv"
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")


def spoil_from(data_dir, day):
    """Change every value, but no date, of `day`, of some days after it and of the last."""

    def change(lines):
        # A day's values become 1 minus themselves; closes stay positive, names stay names.
        for number in {*range(day + 1, min(day + 8, N_DAYS)), N_DAYS}:
            date, close, *values = lines[number].split(",")
            values = [f"{1 - float(v):.6g}" if is_number(v) else v for v in values]
            lines[number] = ",".join([date, f"{2.5 * float(close):.9g}", *values])
        return lines

    for index in INDICES:
        rewrite(data_dir, index, change)


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def whole(split):
    """X, y and days of a split, one after the other."""
    parts = (split.train, split.validation, split.test)
    return tuple(np.concatenate([getattr(p, name) for p in parts]) for name in ("X", "y", "index"))


@pytest.mark.parametrize("load", [pop2_paper, pop2_strict])
def test_split_by_time(made_up, load):
    split = load(made_up)
    parts = (split.train, split.validation, split.test)
    assert tuple(part.n_contexts for part in parts) == SIZES[load]
    _, _, days = whole(split)
    assert (np.diff(days) > np.timedelta64(0, "D")).all()
    assert days[-784] == np.datetime64("2009-12-31") + 1200
    assert all(part.feature_names == split.test.feature_names for part in parts)
    assert split.test.outcome_names == INDICES
    contexts, _ = split.test.frame()
    assert str(contexts.index[0].date()) == str(days[-784])
    with pytest.raises(fw.ForewiseError, match="real data do not have"):
        split.test.true_scenarios(3)


@pytest.fixture(scope="module")
def strict(made_up):
    return pop2_strict(made_up)


@pytest.mark.parametrize("day", [1, 799, 1200, 1982])
def test_strict_features_do_not_see_the_day_or_the_future(copy, strict, day):
    before = strict
    spoil_from(copy, day)
    after = pop2_strict(copy)
    assert after.train.feature_names == before.train.feature_names
    (X, y, days), (X_after, y_after, _) = whole(before), whole(after)
    row = int(np.flatnonzero(days == np.datetime64("2009-12-31") + day)[0])
    assert np.array_equal(X[: row + 1], X_after[: row + 1])
    assert np.array_equal(y[:row], y_after[:row])
    # The outcome of the day is the day's, and the day after sees all of it.
    assert (y[row] != y_after[row]).all()
    assert (X[row + 1] != X_after[row + 1])[X[row + 1] != 0].all()


def test_strict_features_are_those_of_the_day_before(made_up):
    split = pop2_strict(made_up)
    X, y, _ = whole(split)
    for outcome, index in enumerate(INDICES):
        mom = X[:, split.train.feature_names.index(f"{index}_mom")]
        assert np.allclose(mom[1:], y[:-1, outcome], atol=1e-6)
    # Missing before the third day: 0.
    assert (X[:3, split.train.feature_names.index("DJI_Volume")] == 0).all()
    assert split.train.n_features == 5 * 13 + 68


def test_paper_features_do_see_the_day(copy, made_up):
    """The same check fails for the paper's protocol, so it can fail."""
    spoil_from(copy, 900)
    before, after = pop2_paper(made_up), pop2_paper(copy)
    shared = [n for n in before.train.feature_names if n in after.train.feature_names]
    position = [[s.train.feature_names.index(n) for n in shared] for s in (before, after)]
    X, X_after = whole(before)[0][:, position[0]], whole(after)[0][:, position[1]]
    assert np.array_equal(X[:900], X_after[:900])
    assert (X[900] != X_after[900]).mean() > 0.9


def test_paper_drops_what_is_too_close_to_a_return(made_up):
    split = pop2_paper(made_up)
    assert split.train.n_features == 5 * 12 + 68 - 1
    assert "common0" not in split.train.feature_names
    assert "DJI_mom" not in split.train.feature_names
    assert (split.train.y[0] == 0).all()


def replaced(old, new):
    return lambda lines: [line.replace(old, new, 1) for line in lines]


def with_cell(line, column, text):
    def change(lines):
        cells = lines[line].split(",")
        cells[column] = text
        return [*lines[:line], ",".join(cells), *lines[line + 1 :]]

    return change


@pytest.mark.parametrize(
    ("index", "change", "message"),
    [
        ("NYSE", lambda _: [], "Processed_NYSE.csv must be a table .* cannot be read"),
        ("NYSE", lambda _: ["<html>"], "Processed_NYSE.csv must have the columns Date, Close,"),
        ("NYSE", lambda lines: [*lines, "1," * 200], "Processed_NYSE.csv must be a table"),
        ("SP", lambda lines: lines[:-4], "Processed_SP.csv must have 1984 rows, but has 1980"),
        ("SP", replaced("EMA_50", "EMA"), "Processed_SP.csv must have the columns EMA_50, but"),
        ("DJI", with_cell(5, 3, "much"), "column mom of .*Processed_DJI.csv must be finite num"),
        ("DJI", with_cell(5, 3, "inf"), "column mom of .*Processed_DJI.csv must be finite numbers"),
        ("DJI", with_cell(5, 1, "0"), "column Close of .*DJI.csv must be positive everywhere"),
        ("DJI", with_cell(5, 1, ""), "column Close of .*DJI.csv must be positive everywhere"),
        ("DJI", with_cell(5, 0, "tomorrow"), "column Date of .*DJI.csv must be days like"),
        ("DJI", with_cell(5, 0, "2019-01-01"), "column Date of .*DJI.csv must increase"),
        (
            "RUSSELL",
            with_cell(1, 0, "2009-12-30"),
            "Processed_RUSSELL.csv must have the same dates as Processed_DJI.csv, but row 1 ",
        ),
    ],
)
def test_a_wrong_file_is_named(copy, index, change, message):
    rewrite(copy, index, change)
    with pytest.raises(CorruptDataError, match=message):
        pop2_strict(copy)


def test_a_column_too_many_is_named(copy):
    rewrite(copy, "DJI", lambda lines: [lines[0] + ",more", *(line + ",1" for line in lines[1:])])
    with pytest.raises(CorruptDataError, match=r"DJI.csv must have 68 columns beside .* has 69"):
        pop2_paper(copy)


def test_bytes_that_are_no_text_are_named(copy):
    (copy / "cnnpred" / "Processed_SP.csv").write_bytes(b"\xff\xfe\x00\x01" * 100)
    with pytest.raises(CorruptDataError, match=r"Processed_SP.csv must be a table"):
        pop2_strict(copy)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(MissingDataError, match="forewise-lab data fetch cnnpred"):
        pop2_paper(tmp_path)


def test_real_data_have_the_papers_columns(real_paper):
    split = real_paper
    assert split.train.X.shape == (800, 95)
    assert split.validation.X.shape == (400, 95)
    assert split.test.X.shape == (784, 95)
    assert str(split.train.index[0]) == "2009-12-31"
    assert str(split.test.index[-1]) == "2017-11-15"


def test_real_strict_data_have_nothing_to_filter(real_strict):
    """The paper's filter on the training rows drops no column when features are a day old."""
    train = real_strict.train
    assert train.X.shape == (799, 133)
    correlation = np.corrcoef(train.X.T, train.y.T)[:133, 133:]
    assert correlation.max() < 0.1


def regrets(decision, returns):
    """Regret of one decision on every day; in hindsight all goes into the best index."""
    decisions = np.tile(decision, (len(returns), 1))
    costs = pop2_problem().cost(decisions, returns).numpy()
    return costs - np.maximum(-100 * returns.max(axis=1), 0)


@pytest.mark.parametrize(
    ("decision", "by_batches", "by_rows"),
    [([100.0, 0, 0, 0, 0], 777, 826), ([20.0] * 5, 1021, 1064)],
    ids=["everything in DJI", "equal weights"],
)
def test_real_regret_of_constant_decisions(real_paper, real_strict, decision, by_batches, by_rows):
    """The figures known for these decisions are means over batches of 128 of their means.

    The last batch has 16 days only, so that these weigh eight times as much as the others.
    """
    for split in (real_paper, real_strict):
        regret = regrets(decision, split.test.y) * 1e4
        batches = [regret[start : start + 128].mean() for start in range(0, 784, 128)]
        assert np.mean(batches) == pytest.approx(by_batches, abs=0.6)
        assert regret.mean() == pytest.approx(by_rows, abs=0.6)


def test_real_unconditional_decision_is_everything_in_one_index(real_paper):
    scenarios = fw.Scenarios(real_paper.train.y[None])
    decision = fw.solve(pop2_problem(), scenarios, fw.ReferenceSolver()).decision
    assert decision[0].tolist() == pytest.approx([100.0, 0.0, 0.0, 0.0, 0.0], abs=1e-6)
