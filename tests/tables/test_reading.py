"""Tables as people write them: read as they are meant, or refused with the row and the column."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from forewise import features, tables
from forewise.exceptions import InvalidInputError
from tests.tables.messy import HEADER, ROWS, written


def cells(frame):
    return frame.astype(object).where(frame.notna(), "").to_numpy().tolist()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_every_dialect_is_the_same_table(tmp_path, separator, encoding, quoted, line_end):
    decimal = "." if separator == "," and not quoted else ","
    options = {"separator": separator, "encoding": encoding, "quoted": quoted}
    path = written(tmp_path / "t.csv", **options, decimal=decimal, line_end=line_end)
    table = tables.read(path)
    assert list(table.columns) == HEADER
    assert table.index.tolist() == [2, 3, 4]
    assert table["store"].tolist() == [row[1] for row in ROWS]
    encoded = features.Columns.from_frame(table[["price", "sales", "promotion"]])
    np.testing.assert_allclose(
        encoded.encode(table[["price", "sales", "promotion"]]),
        [[1.5, 0, 12, 1], [1.875, 1, 9.5, 0], [2.25, 0, 1200, 0]],
    )


def test_one_column_and_excels_own_first_line(tmp_path):
    (tmp_path / "one.csv").write_text("sales\n3\n4\n")
    assert tables.read(tmp_path / "one.csv")["sales"].tolist() == ["3", "4"]
    path = written(tmp_path / "t.csv", separator=";", before="sep=;\n")
    assert list(tables.read(path).columns) == HEADER
    assert tables.read(path).index.tolist() == [3, 4, 5]


def test_separators_within_quotes_lines_within_cells_and_blank_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('store,note\n"A, the first","two\nlines"\n\n,\nB,"say ""hi"""\n')
    table = tables.read(path)
    assert cells(table) == [["A, the first", "two\nlines"], ["B", 'say "hi"']]
    assert table.index.tolist() == [2, 5]


def test_a_separator_at_the_end_of_every_row_is_no_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;\n1;2;\n3;4;\n")
    assert cells(tables.read(path)) == [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "is empty"),
        ("\n\n", "names of columns in row 1"),
        ("a,b\n", "header and nothing below"),
        ("a,b\n\n,\n", "header and nothing below"),
        ("a,b,a\n1,2,3\n", "'a' in columns 1, 3"),
        ("a,,c\n1,2,3\n", "column 2 of the header .row 1. has none"),
        ("a,b,c\n1,2,3\n4,5\n", "row 3 must have 3 cells.*has 2: 'c'"),
        ("a,b\n1,2\n3,4\n5,6,7\n", "row 4 must have 2 cells.*has 3; after 'b' comes '7'"),
        ('a,b\n1,"2\n3,4\n', "around line 3"),
    ],
)
def test_what_is_no_table_is_refused_with_the_row(tmp_path, text, reported):
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=reported) as raised:
        tables.read(path)
    assert "broken.csv" in str(raised.value)


def test_what_is_no_file_of_a_table_is_reported(tmp_path):
    with pytest.raises(InvalidInputError, match="does not exist"):
        tables.read(tmp_path / "none.csv")
    with pytest.raises(InvalidInputError, match="is a folder"):
        tables.read(tmp_path)
    for content, reported in [
        (gzip.compress(b"a,b\n1,2\n"), "unpack it"),
        (b"\xd0\xcf\x11\xe0rest", "old Excel"),
        (b"PK\x03\x04rest", "as Excel"),
        (b"PAR1rest", "as Parquet"),
    ]:
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(InvalidInputError, match=reported):
            tables.read(tmp_path / "t.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_what_is_written_is_read_again(tmp_path, ending):
    table = pd.DataFrame(
        {
            "day": pd.date_range("2024-01-01", periods=3),
            "name": ["a", None, 'quoted "b", and more'],
            "order": [1.25, np.nan, 1e8],
            "few": [1e-8, 2.0, 3.0],
        }
    )
    path = tmp_path / f"t.{ending}"
    tables.write(table, path)
    again = tables.read(path)
    assert again.index.tolist() == [2, 3, 4]
    assert pd.to_datetime(again["day"]).tolist() == table["day"].tolist()
    assert again["name"].isna().tolist() == [False, True, False]
    np.testing.assert_allclose(pd.to_numeric(again["order"]), table["order"])
    np.testing.assert_allclose(pd.to_numeric(again["few"]), table["few"])
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_pieces_are_the_whole(tmp_path, ending):
    table = pd.DataFrame({"a": np.arange(10), "b": [f"s{i % 3}" for i in range(10)]})
    path = tmp_path / f"t.{ending}"
    with tables.Writer(path) as writer:
        for start in (0, 4, 8):
            writer.append(table[start : start + 4])
    assert writer.rows == 10
    pieces = list(tables.chunks(path, rows=3))
    assert [len(piece) for piece in pieces] == [3, 3, 3, 1]
    pd.testing.assert_frame_equal(pd.concat(pieces), tables.read(path))
    assert tables.read(path)["a"].astype(int).tolist() == list(range(10))


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_nothing_half_written_stays(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    tables.write(pd.DataFrame({"a": [1]}), path)
    before = path.read_bytes()

    def interrupted():
        with tables.Writer(path) as writer:
            writer.append(pd.DataFrame({"a": [2]}))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_where_nothing_can_be_written_is_reported_before(tmp_path):
    for name, reported in [("t.doc", "end in .csv"), ("no/t.csv", "a folder that exists")]:
        with pytest.raises(ValueError, match=reported):
            tables.Writer(tmp_path / name)


def test_a_large_file_is_read_in_bounded_memory(tmp_path):
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("a,b,c\n")
        for start in range(0, 400_000, 1000):
            file.write("".join(f"{i},{i % 7},text\n" for i in range(start, start + 1000)))
    tracemalloc.start()
    n_rows = sum(len(piece) for piece in tables.chunks(path, rows=5000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == 400_000
    assert peak < 2**24  # some 5 MB; all of it takes ten times as much
