"""Columns of a table as numbers: as in training, whatever a later table has."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise.exceptions import ColumnWarning
from forewise.features import Columns
from forewise.validation import spelling

N = 240


def table(seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    price = random.uniform(1, 9, N).round(2)
    return pd.DataFrame(
        {
            "store": random.choice(["north", "south", "east"], N),
            "promotion": random.choice(["ja", "Nein"], N),
            "price": [f"{value:.2f}".replace(".", ",") for value in price],
            "rain": np.where(random.random(N) < 0.1, np.nan, random.normal(size=N)),
            "day": pd.date_range("2024-01-01", periods=N).strftime("%d.%m.%Y"),
            "open": random.random(N) < 0.5,
            "country": "SE",
        }
    )


def demand(frame: pd.DataFrame) -> np.ndarray:
    random = np.random.default_rng(1)
    size = frame["store"].map({"north": 5.0, "south": 20.0, "east": 60.0}).to_numpy()
    return size * random.uniform(0.8, 1.2, len(frame))


def test_each_column_becomes_what_it_is():
    columns = Columns.from_frame(table())
    kinds = dict(zip(columns.names, columns.frame()["kind"], strict=True))
    assert kinds == {
        "store": "category",
        "promotion": "boolean",
        "price": "number",
        "rain": "number",
        "day": "date",
        "open": "boolean",
        "country": "ignored",
    }
    encoded = pd.DataFrame(columns.encode(table()), columns=columns.features)
    frame = table()
    np.testing.assert_array_equal(encoded["promotion"], frame["promotion"] == "ja")
    np.testing.assert_allclose(encoded["price"], frame["price"].str.replace(",", ".").astype(float))
    np.testing.assert_array_equal(encoded["rain_missing"], frame["rain"].isna())
    assert encoded["rain"][frame["rain"].isna()].eq(frame["rain"].median()).all()
    assert encoded["day_weekday_0"][0] == 1  # a Monday
    assert encoded.filter(like="store_").sum(axis=1).eq(1).all()


@pytest.mark.parametrize("backend", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_the_same_table(backend):
    frame = table()
    other = pytest.importorskip(backend)
    same = other.from_pandas(frame) if backend == "polars" else other.Table.from_pandas(frame)
    np.testing.assert_array_equal(
        Columns.from_frame(same).encode(same), Columns.from_frame(frame).encode(frame)
    )
    learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.NeighborPredictor())
    decided = learner.fit(same, demand(frame)).decide(same)
    assert isinstance(decided, type(same))
    expected = learner.fit(frame, demand(frame)).decide(frame)
    np.testing.assert_array_equal(np.asarray(decided), expected)


def test_what_training_has_not_seen_is_counted_and_reported():
    columns = Columns.from_frame(table())
    later = table().head(5)
    later.loc[[1, 2], "store"] = "west"
    later.loc[3, "promotion"] = None
    with pytest.warns(
        ColumnWarning, match=r"'store'.* 2 of 5 rows \('west' 2 times\).*'promotion'"
    ):
        encoded = pd.DataFrame(columns.encode(later), columns=columns.features)
    assert encoded["store_other"].tolist() == [0, 1, 1, 0, 0]
    report: list[str] = []
    columns.encode(later, report)
    assert len(report) == 2


def test_rare_categories_share_a_feature_so_that_new_ones_are_learned():
    values = ["a"] * 30 + ["b"] * 30 + ["c", "d", "e", "e"]
    (part,) = Columns.from_frame(pd.DataFrame({"kind": values})).parts
    assert part.categories == ["a", "b"]
    assert part.others == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert part.encode(pd.Series(["a", "new"]), []).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_crosses_and_empty_cells_are_yes_and_no():
    columns = Columns.from_frame(pd.DataFrame({"special": ["x", None, "x", ""]}))
    assert columns.encode(pd.DataFrame({"special": [None, "x"]})).tolist() == [[0], [1]]


def test_a_decimal_comma_and_a_day_first_are_remembered():
    """A later table of one row would not tell."""
    frame = pd.DataFrame(
        {"price": ["1,25", "3,5", "2,125"] * 9, "day": ["25/3/2024"] * 26 + ["4/3/2024"]}
    )
    columns = Columns.from_frame(frame)
    encoded = columns.encode(pd.DataFrame({"price": ["1,234"], "day": ["4/3/2024"]}))
    assert encoded[0, 0] == 1.234
    assert encoded[0, 1 + 0] == 1  # the 4th of March was a Monday


REFUSED = {
    "almost unique text": (
        [f"order {i}" for i in range(N)],
        "'x' is text with 240 different values in 240 rows.*leave it out",
    ),
    "text among numbers": (
        [str(1.5 * i) if i != 7 else "broken" for i in range(N)],
        "'x' has numbers, but row 7 has 'broken'",
    ),
    "a mistake among repeated numbers": (
        [str(i % 12) if i != 7 else "7o" for i in range(N)],
        "'x' has numbers, but row 7 has '7o'.*category",
    ),
    "days or months": (["03/04/2024", "05/06/2024"] * (N // 2), "day or month is first.*dayfirst"),
    "infinity": ([np.inf] + [1.0] * (N - 1), r"finite.*'x' \(1 of 240 rows\)"),
    "lists": ([[1, 2]] * N, "'x' holds a list"),
    "complex": ([1j] * N, "Complex"),
    "a length of time": (pd.to_timedelta(np.arange(N), unit="h"), "'x' is a length of time"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_encoded_is_refused_with_advice(case):
    values, message = REFUSED[case]
    with pytest.raises(fw.InvalidInputError, match=message):
        Columns.from_frame(pd.DataFrame({"x": values}))


def test_text_that_was_the_same_in_every_row_of_training_is_reported_where_it_differs():
    columns = Columns.from_frame(pd.DataFrame({"country": ["SE"] * 9, "note": [None] * 9}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns.encode(pd.DataFrame({"country": ["SE", None], "note": ["", None]}))
    later = pd.DataFrame({"country": ["SE", "NO"], "note": ["new", "new"]})
    with pytest.warns(ColumnWarning, match=r"'country'.* 1 of 2 rows.*'note'.* 2 of 2 rows"):
        columns.encode(later)


def test_times_are_those_of_the_zone_of_training():
    hours = pd.DataFrame({"t": pd.date_range("2024-05-01", periods=30, freq="h", tz="Asia/Tokyo")})
    columns = Columns.from_frame(hours)
    elsewhere = hours.assign(t=hours["t"].dt.tz_convert("UTC"))
    np.testing.assert_array_equal(columns.encode(elsewhere), columns.encode(hours))
    naive = hours.assign(t=hours["t"].dt.tz_localize(None))
    with pytest.raises(fw.InvalidInputError, match=r"time zone Asia/Tokyo.*tz_localize\('Asia"):
        columns.encode(naive)
    with pytest.raises(fw.InvalidInputError, match=r"no time zone.*has UTC.*tz_localize\(None"):
        Columns.from_frame(naive).encode(elsewhere)
    np.testing.assert_array_equal(Columns.from_frame(naive).encode(naive), columns.encode(hours))


def test_kinds_can_be_named():
    frame = pd.DataFrame({"shop": [1, 2, 3, 4] * 9, "note": [f"n{i}" for i in range(36)]})
    columns = Columns.from_frame(frame, {"shop": "category", "note": "ignore"})
    assert [part.kind for part in columns.parts] == ["category", "ignored"]
    assert len(columns.features) == 5
    with pytest.raises(fw.InvalidInputError, match="kind of 'shop' must be 'number'"):
        Columns.from_frame(frame, {"shop": "colour"})
    with pytest.raises(fw.InvalidInputError, match="'size'"):
        Columns.from_frame(frame, {"size": "number"})


def test_later_text_in_a_number_or_boolean_column_names_the_row():
    columns = Columns.from_frame(table())
    for name, wrong in (("price", "free"), ("promotion", "maybe"), ("day", "tomorrow")):
        later = table().head(3)
        later.loc[1, name] = wrong
        with pytest.raises(fw.InvalidInputError, match=f"{name!r} must be .*row 1 has {wrong!r}"):
            columns.encode(later)


def test_learners_take_frames_with_text_and_missing_values(tmp_path):
    frame = table()
    for predictor in (
        fw.ForestPredictor(n_trees=20),
        fw.GaussianPredictor((8,), training=fw.Training(epochs=3), random_state=0),
        fw.GroupedPredictor("store"),
        fw.QuantileBoostingPredictor((0.5, 0.75), n_trees=5),
    ):
        learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), predictor).fit(frame, demand(frame))
        decided = learner.decide(frame)
        assert decided.shape == (N, 1)
        learner.policy_.save(tmp_path / "policy")
        stored = fw.load_policy(tmp_path / "policy")
        pd.testing.assert_frame_equal(stored.decide(frame), decided)
    with pytest.raises(fw.InvalidInputError, match="data frame with the columns that were fitted"):
        learner.decide(np.zeros((3, 7)))


def test_numbers_without_holes_are_encoded_as_themselves():
    X = np.random.default_rng(0).normal(size=(50, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    columns = Columns.from_frame(frame)
    assert columns.are_numbers
    np.testing.assert_array_equal(columns.encode(frame), X)


SPELLED = {
    "points": (["1.5", "2", "-3.25e2"], "."),
    "commas": (["1,5", "2", "-3,25"], ","),
    "thousands with points": (["1.234,5", "2.000"], ","),
    "thousands with commas": (["1,234.5", "2,000", "7"], "."),
    "thousands alone": (["1,234", "12,500", "3"], "."),
    "three decimals below one": (["0,125", "1,234"], ","),
    "thousands beside hundreds": (["1.090", "980", "50", "12.500"], ","),
    "three decimals everywhere": (["1.250", "50.000", "2.375"], "."),
    "three decimals beside thousands": (["1.250", "4980", "50"], "."),
    "a currency": (["2,50 €", "€ 3", "4,1\u00a0€"], ","),
    "spaces": (["1 234,5", "2 000"], ","),
    "text": (["1.5", "two"], None),
    "both marks": (["1.5", "2,5"], None),
}


@pytest.mark.parametrize("case", SPELLED)
def test_decimal_marks(case):
    texts, mark = SPELLED[case]
    assert spelling.decimal_mark(texts) == mark


@pytest.mark.parametrize("yes", ["x", "yes", "Ja", "TRUE"])
def test_a_lonely_yes_means_that_empty_cells_are_no(yes):
    frame = pd.DataFrame({"sold_out": [yes, "", None, yes, "k.A."]})
    columns = Columns.from_frame(frame)
    np.testing.assert_array_equal(columns.encode(frame)[:, 0], [1, 0, 0, 1, 0])
    assert spelling.as_booleans(["1"]) is None  # a number


def test_days_in_several_spellings():
    texts = ["2024-04-03", "03.04.2024", "3 Apr 2024", "2024/04/03", "20240403", "April 3, 2024"]
    read = spelling.as_days(texts)
    assert set(read.values()) == {np.datetime64("2024-04-03", "s")}
    assert spelling.as_days(["3/4/2024"]) is None  # nothing says which
    assert spelling.as_days(["3/4/2024", "25/4/2024"])["3/4/2024"] == np.datetime64("2024-04-03")
    assert spelling.as_days(["4/3/2024", "4/25/2024"])["4/3/2024"] == np.datetime64("2024-04-03")
    assert spelling.as_days(["2024-02-30"]) is None
    assert spelling.as_days(["2024-04-03", "soon"]) is None
