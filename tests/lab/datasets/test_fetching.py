"""Downloads of real data: what is kept, and what is refused."""

from __future__ import annotations

import hashlib
import http.server
import io
import stat
import threading
import zipfile

import pytest

import forewise as fw
from forewise.datasets import SOURCES, CorruptDataError, Source, locate
from forewise.exceptions import MissingDataError
from forewise_lab.datasets import fetching
from forewise_lab.datasets.fetching import fetch

CONTENT = {"one.csv": b"a,b\n1,2\n", "two.csv": b"c\n3\n"}


def archive_of(entries):
    """Bytes of a ZIP archive; names are taken as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def a_computer_without_data(monkeypatch, tmp_path):
    """Home, current directory and environment that hold no data."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FOREWISE_DATA", raising=False)
    (tmp_path / "project" / "work").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "work")
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def serve(monkeypatch):
    """A web server on this computer, and the data set `toy` that comes from it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        body, promised, code = b"", None, 200

        def do_GET(self):
            self.server.n_requests += 1
            self.send_response(self.code)
            self.send_header("Content-Length", str(self.promised or len(self.body)))
            self.end_headers()
            self.wfile.write(self.body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.n_requests = 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def start(body, promised=None, code=200, aliases=None):
        Handler.body, Handler.promised, Handler.code = body, promised, code
        toy = Source(
            name="toy",
            title="a toy",
            checksums={name: hashlib.sha256(c).hexdigest() for name, c in CONTENT.items()},
            homepage="https://example.org/toy",
            archive=f"http://127.0.0.1:{server.server_port}/toy.zip",
            aliases=aliases or {},
        )
        monkeypatch.setitem(SOURCES, "toy", toy)
        return server

    yield start
    server.shutdown()
    thread.join()
    server.server_close()


def test_fetch_puts_the_files_in_their_folder(serve, tmp_path):
    entries = [*((f"folder/{n}", c) for n, c in CONTENT.items()), ("readme.txt", b"not ours")]
    server = serve(archive_of(entries))
    folder = fetch("toy", tmp_path / "data")
    assert folder == tmp_path / "data" / "toy" == locate("toy", tmp_path / "data")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENT
    assert list((tmp_path / "data").iterdir()) == [folder]
    # What is there and whole is not fetched again; what was altered is.
    assert fetch("toy", tmp_path / "data") == folder
    assert server.n_requests == 1
    (folder / "one.csv").write_bytes(b"altered")
    fetch("toy", tmp_path / "data")
    assert server.n_requests == 2
    assert (folder / "one.csv").read_bytes() == CONTENT["one.csv"]


def test_fetched_files_get_the_names_they_have_here(serve, tmp_path):
    serve(
        archive_of([("o&e.csv", CONTENT["one.csv"]), ("two.csv", CONTENT["two.csv"])]),
        aliases={"o&e.csv": "one.csv"},
    )
    assert sorted(path.name for path in fetch("toy", tmp_path).iterdir()) == sorted(CONTENT)


def test_fetch_goes_by_default_where_data_are_sought(serve, tmp_path, monkeypatch):
    serve(archive_of(CONTENT.items()))
    assert fetch("toy") == tmp_path / "home" / ".cache" / "forewise" / "toy" == locate("toy")
    monkeypatch.setenv("FOREWISE_DATA", str(tmp_path / "set"))
    assert fetch("toy") == tmp_path / "set" / "toy" == locate("toy")


GOOD = archive_of(CONTENT.items())


def link():
    entry = zipfile.ZipInfo("one.csv")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("body", "promised", "message"),
    [
        (archive_of([("one.csv", b"x"), ("two.csv", b"y")]), None, "one.csv in .* SHA-256 .* but"),
        (archive_of([("one.csv", CONTENT["one.csv"])]), None, "must contain two.csv, but does not"),
        (GOOD[:-30], len(GOOD), "was cut short; try again"),
        (GOOD[:-30], None, "is not a ZIP archive that can be read"),
        (b"<html>moved</html>", None, "is not a ZIP archive that can be read"),
    ],
)
def test_a_bad_download_is_refused_and_leaves_nothing(serve, tmp_path, body, promised, message):
    serve(body, promised)
    with pytest.raises(CorruptDataError, match=message):
        fetch("toy", tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
    assert not list(tmp_path.rglob("evil"))


UNSAFE = ("../evil", "a/../../evil", "/evil", "..\\evil", "C:evil")


@pytest.mark.parametrize("entry", UNSAFE)
def test_nothing_but_the_published_files_is_written(serve, tmp_path, entry):
    """Wherever an entry of the archive points to."""
    serve(archive_of([(entry, b"x"), *CONTENT.items()]))
    folder = fetch("toy", tmp_path / "data")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(written) == sorted(folder / name for name in CONTENT)


def test_a_published_name_may_stand_anywhere_and_is_written_as_a_file(serve, tmp_path):
    others = [(name, content) for name, content in CONTENT.items() if name != "one.csv"]
    serve(archive_of([("../one.csv", CONTENT["one.csv"]), *others]))
    folder = fetch("toy", tmp_path / "data")
    assert (folder / "one.csv").read_bytes() == CONTENT["one.csv"]
    serve(archive_of([(link(), b"/etc/passwd"), *others]))
    with pytest.raises(CorruptDataError, match=r"one.csv in .* SHA-256"):
        fetch("toy", tmp_path / "other")


def test_a_bad_download_leaves_old_files_as_they_were(serve, tmp_path):
    serve(archive_of([("one.csv", CONTENT["one.csv"]), ("two.csv", b"wrong")]))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "one.csv").write_bytes(b"old")
    with pytest.raises(CorruptDataError, match="Nothing was kept"):
        fetch("toy", tmp_path)
    assert (tmp_path / "toy" / "one.csv").read_bytes() == b"old"


def test_damaged_content_is_not_kept(serve, tmp_path):
    body = bytearray(archive_of([("one.csv", bytes(range(256)) * 40), ("two.csv", b"x")]))
    body[60:90] = b"\x55" * 30
    serve(bytes(body))
    with pytest.raises(CorruptDataError, match="is not a ZIP archive that can be read"):
        fetch("toy", tmp_path)
    assert list(tmp_path.glob("*toy*")) == []


def test_downloads_and_contents_have_a_largest_size(serve, tmp_path, monkeypatch):
    serve(GOOD)
    monkeypatch.setattr(fetching, "_LARGEST", 50)
    with pytest.raises(CorruptDataError, match="larger than the 50 bytes that are expected"):
        fetch("toy", tmp_path)
    serve(archive_of([("one.csv", bytes(10**5))]))
    monkeypatch.setattr(fetching, "_LARGEST", 10**4)
    with pytest.raises(CorruptDataError, match=r"one.csv in .* SHA-256"):
        fetch("toy", tmp_path)


def test_offline_is_said(serve, tmp_path):
    server = serve(GOOD)
    server.socket.close()
    with pytest.raises(MissingDataError, match=r"could not be reached .* check the connection"):
        fetch("toy", tmp_path)
    assert list(tmp_path.glob("*toy*")) == []


def test_a_moved_archive_is_said(serve, tmp_path):
    serve(b"gone", code=404)
    with pytest.raises(MissingDataError, match=r"answered 404 .* may have moved"):
        fetch("toy", tmp_path)


def test_data_without_an_archive_are_got_by_hand(tmp_path):
    with pytest.raises(MissingDataError, match=r"bakery cannot be fetched: get bakery_data.csv,"):
        fetch("bakery", tmp_path)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(fw.InvalidInputError, match=r"name must be one of .* but is 'nope'"):
        fetch("nope", tmp_path)


def test_a_folder_that_cannot_be_made_is_named(serve, tmp_path):
    serve(GOOD)
    (tmp_path / "file").touch()
    with pytest.raises(fw.InvalidInputError, match=r"data_dir must be a folder .*file is not"):
        fetch("toy", tmp_path / "file")
