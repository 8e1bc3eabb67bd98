"""The results table under attack: damage, full disks, killed writers."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import time

import pytest

from forewise.exceptions import StorageError
from forewise_lab.experiments.rows import COLUMNS, RowTable, key_of, read_rows


def row(number: int, **changes: object) -> dict:
    return {
        "experiment": "e",
        "method": "é\n",  # text that must not break a line
        "seed": number,
        "n_train": 10,
        "m_train": 2,
        "m": 4,
        "metric": "R",
        "value": number / 3,
        "config_hash": "abc",
        **changes,
    }


def seeds(folder) -> list[int]:
    return read_rows(folder)["seed"].tolist()


def forked(action) -> int:
    """A child that does it; costs milliseconds where a fresh process would import for seconds."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return child


def succeeded(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_rows_come_back_as_they_went(tmp_path):
    table = RowTable(tmp_path / "new" / "folder")
    assert table.append([row(0), row(1, note="well")]) == 2
    found = read_rows(tmp_path / "new" / "folder")
    assert list(found.columns) == list(COLUMNS)
    assert found["value"].tolist() == [0.0, 1 / 3]
    assert found["method"].tolist() == ["é\n", "é\n"]
    assert found["note"].isna().tolist() == [True, False]


def test_no_row_twice(tmp_path):
    with RowTable(tmp_path) as table:
        assert table.append([row(0), row(0, value=9.0)]) == 1
        assert key_of(row(0)) in table
    with RowTable(tmp_path) as table:
        assert table.append([row(0, value=7.0), row(1)]) == 1
    assert read_rows(tmp_path)["value"].tolist() == [0.0, 1 / 3]


def test_one_writer_at_a_time(tmp_path):
    with RowTable(tmp_path), pytest.raises(StorageError, match="another run"):
        RowTable(tmp_path)
    RowTable(tmp_path).close()


def test_a_table_cut_anywhere_keeps_all_whole_rows(tmp_path):
    with RowTable(tmp_path) as table:
        table.append([row(number) for number in range(3)])
    content = (tmp_path / "rows.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == 10]
    for cut in sorted({*range(0, len(content), 9), *ends, *(end - 1 for end in ends)}):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "rows.jsonl").write_bytes(content[:cut])
        with RowTable(folder) as again:
            assert len(again) == sum(end <= cut for end in ends)
            again.append([row(number) for number in range(3)])
        assert (folder / "rows.jsonl").read_bytes() == content


@pytest.mark.parametrize("damage", [b"\x00\xff\x00\n", b'{"value": 1}\n', b"[]\n", b"\n"])
def test_damaged_lines_are_left_out(tmp_path, damage):
    with RowTable(tmp_path) as table:
        table.append([row(0), row(1)])
    first, second = (tmp_path / "rows.jsonl").read_bytes().splitlines(keepends=True)
    for content in (first + damage + second, first + second + damage):
        (tmp_path / "rows.jsonl").write_bytes(content)
        with pytest.warns(UserWarning, match=r"line \d of .*rows.jsonl is damaged"):
            assert seeds(tmp_path) == [0, 1]
        with pytest.warns(UserWarning, match="damaged"):
            table = RowTable(tmp_path)
        with table:
            assert len(table) == 2
            assert table.append([row(1)]) == 0


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_leaves_no_trace(tmp_path, monkeypatch, code):
    table = RowTable(tmp_path)
    table.append([row(0)])
    before = (tmp_path / "rows.jsonl").read_bytes()

    def refuse(descriptor, line):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        with pytest.raises(StorageError, match="all finished rows are kept"):
            table.append([row(1)])
    assert (tmp_path / "rows.jsonl").read_bytes() == before
    table.append([row(1)])
    assert seeds(tmp_path) == [0, 1]


def test_a_disk_that_takes_half_a_row(tmp_path):
    """A limit on the size of files makes the system itself cut a write short."""
    table = RowTable(tmp_path)
    table.append([row(0)])
    size = (tmp_path / "rows.jsonl").stat().st_size

    def write_beyond() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, size + 50))
        with pytest.raises(StorageError, match="run the same again to go on"):
            table.append([row(1)])

    assert succeeded(forked(write_beyond))
    assert (tmp_path / "rows.jsonl").stat().st_size == size
    table.append([row(1)])
    assert seeds(tmp_path) == [0, 1]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot open .*choose another folder"):
        RowTable(tmp_path / "file")


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    # Permissions do not stop the superuser, under whom tests may run: the system's answer is
    # given in its place.
    def refuse(path, *arguments, **settings):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match=r"Permission denied.*choose another folder"):
        RowTable(tmp_path)


def test_nothing_there_is_reported(tmp_path):
    with pytest.raises(StorageError, match=r"there are no results in .*rows.jsonl is missing"):
        read_rows(tmp_path)


def test_killed_writers_lose_no_finished_row(tmp_path):
    """What was appended before the kill is there after it, each once."""
    expected = 0
    for attempt in range(30):
        receive, send = os.pipe()

        def write(base: int = 1000 * attempt, send: int = send) -> None:
            table = RowTable(tmp_path)
            for number in range(1000):
                table.append([row(base + number, value="x" * 3000)])
                os.write(send, b".")

        child = forked(write)
        os.close(send)
        time.sleep(0.004 * (attempt % 10) + 0.002)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(receive, "rb") as pipe:
            expected += len(pipe.read())
    RowTable(tmp_path).close()
    found = seeds(tmp_path)
    assert len(found) == len(set(found))
    # A row may be on disk whose writer did not live to tell.
    assert expected <= len(found) <= expected + 30
    assert expected > 30


def test_failures_are_forgotten_once_a_fit_succeeds(tmp_path):
    table = RowTable(tmp_path)
    failure = {"m": 0, "metric": "error", "value": None, "note": "no"}
    table.append([row(0, **failure), row(1, **failure)])
    assert read_rows(tmp_path)["metric"].tolist() == ["error", "error"]
    table.append([row(0)])
    found = read_rows(tmp_path)
    assert list(zip(found["seed"], found["metric"], strict=True)) == [(1, "error"), (0, "R")]


def test_quick_rows_are_marked_and_have_a_folder_of_their_own(tmp_path):
    for folder, quick in (("whole", False), ("quick", True)):
        with RowTable(tmp_path / folder, quick=quick) as table:
            table.append([row(0)])
    assert read_rows(tmp_path / "quick")["quick"].tolist() == [True]
    assert read_rows(tmp_path / "whole")["quick"].tolist() == [False]
    for folder, quick in (("whole", True), ("quick", False)):
        before = (tmp_path / folder / "rows.jsonl").read_bytes()
        with pytest.raises(StorageError, match="quick"):
            RowTable(tmp_path / folder, quick=quick)
        assert (tmp_path / folder / "rows.jsonl").read_bytes() == before


def test_rows_without_the_mark_are_whole(tmp_path):
    """Those of before there was one."""
    (tmp_path / "rows.jsonl").write_text(json.dumps(row(0)) + "\n")
    assert read_rows(tmp_path)["quick"].tolist() == [False]
    with pytest.raises(StorageError, match="quick"):
        RowTable(tmp_path, quick=True)
