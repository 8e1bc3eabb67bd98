"""Real data files: where they are sought, and what is said of them."""

from __future__ import annotations

import hashlib

import pytest

import forewise as fw
from forewise.datasets import SOURCES, Source, available, files, locate
from forewise.exceptions import MissingDataError

CONTENT = {"one.csv": b"a,b\n1,2\n", "two.csv": b"c\n3\n"}


@pytest.fixture(autouse=True)
def a_computer_without_data(monkeypatch, tmp_path):
    """Home, current directory and environment that hold no data."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FOREWISE_DATA", raising=False)
    (tmp_path / "project" / "work").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "work")


@pytest.fixture
def toy(monkeypatch):
    """The data set `toy`, as a function that writes its files into a folder."""
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    source = Source("toy", "a toy", checksums, "https://example.org/toy", "https://example.org/zip")
    monkeypatch.setitem(SOURCES, "toy", source)

    def write(folder):
        folder.mkdir(parents=True)
        for name, content in CONTENT.items():
            (folder / name).write_bytes(content)

    return write


def test_places_in_their_order(tmp_path, monkeypatch):
    default = files.search_places()
    assert default[0] == tmp_path / "project" / "shared" / "data"
    assert default[-1] == tmp_path / "home" / ".cache" / "forewise"
    monkeypatch.setenv("FOREWISE_DATA", "~/mine")
    assert files.search_places() == [tmp_path / "home" / "mine"]
    assert files.search_places(tmp_path) == [tmp_path]


def test_a_folder_beside_the_current_directory_is_found(toy, tmp_path):
    folder = tmp_path / "project" / "shared" / "data" / "toy"
    toy(folder)
    assert locate("toy") == folder


def test_missing_data_say_where_was_looked_and_how_to_get_them(tmp_path):
    (tmp_path / "cnnpred").mkdir()
    (tmp_path / "cnnpred" / "Processed_DJI.csv").touch()
    with pytest.raises(MissingDataError) as caught:
        locate("cnnpred", tmp_path)
    message = str(caught.value)
    assert isinstance(caught.value, (fw.ForewiseError, FileNotFoundError))
    assert f"{tmp_path / 'cnnpred'} (without Processed_NASDAQ.csv, " in message
    assert "forewise-lab data fetch cnnpred" in message
    assert "https://archive.ics.uci.edu" in message
    assert "FOREWISE_DATA" in message
    with pytest.raises(MissingDataError, match=r"elsewhere.*cnnpred \(no such folder\)"):
        locate("cnnpred", tmp_path / "elsewhere")


def test_what_is_available(toy, tmp_path):
    states = {state.source.name: state for state in available(tmp_path)}
    assert set(states) == {"cnnpred", "bakery", "vic_electricity", "toy"}
    assert states["toy"].missing == ("one.csv", "two.csv")
    assert "toy: missing; run `forewise-lab data fetch toy`" in str(states["toy"])
    assert "bakery: missing; get bakery_data.csv" in str(states["bakery"])
    toy(tmp_path / "toy")
    state = available(tmp_path)[-1]
    assert state.complete
    assert str(state) == f"toy: complete, in {tmp_path / 'toy'}"
    (tmp_path / "toy" / "one.csv").write_bytes(b"altered")
    (tmp_path / "toy" / "two.csv").unlink()
    state = available(tmp_path)[-1]
    assert (state.complete, state.missing, state.altered) == (False, ("two.csv",), ("one.csv",))
    assert "two.csv is missing, one.csv is not the published file" in str(state)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(fw.InvalidInputError, match=r"name must be one of .* but is 'nope'"):
        locate("nope", tmp_path)
    with pytest.raises(fw.InvalidInputError, match="data_dir must be"):
        locate("cnnpred", 3)
