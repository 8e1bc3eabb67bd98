"""Where is written and what is removed; what happens when the disk fails or others write too."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from forewise.exceptions import StorageError
from forewise.storage import folders
from tests.storage.folders import read, round_trip, same, write


def test_folders_of_others_are_not_touched(tmp_path):
    for number, name in enumerate(["notes.txt", ".hidden", "sub", "header.json", "arrays-1.bin"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).mkdir() if name == "sub" else (folder / name).write_text('{"mine": 1}')
        with pytest.raises(StorageError, match=rf"not forewise's \({name}\).*choose an empty"):
            write(folder, {"a": 1})
        assert os.listdir(folder) == [name]


def test_files_added_to_a_stored_folder_stay(stored):
    names = ["README.md", "arrays-old.safetensors", ".forewise-x.tmp", "header.json.bak"]
    for name in names:
        (stored / name).write_text("mine")
        os.utime(stored / name, (0, 0))
    assert round_trip(stored, {"a": 2}) == {"a": 2}
    assert {name for name in names if (stored / name).read_text() == "mine"} == set(names)


def test_a_damaged_folder_can_be_written_again(stored):
    header = stored / "header.json"
    header.write_bytes(header.read_bytes()[:100])
    assert round_trip(stored, {"a": 2}) == {"a": 2}


def test_only_old_leftovers_are_removed(tmp_path):
    """Fresh ones may be another writer's; they do not make a folder somebody else's either."""
    names = [f"{prefix}-{i:016x}" for i in range(2) for prefix in ("arrays", ".forewise")]
    names = [n + (".tmp" if n[0] == "." else ".safetensors") for n in names]
    for name in names:
        (tmp_path / name).touch()
    for name in names[:2]:
        os.utime(tmp_path / name, (0, 0))
    write(tmp_path, {"a": 1})
    assert set(names) & set(os.listdir(tmp_path)) == set(names[2:])
    assert len(os.listdir(tmp_path)) == 4


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match=r"cannot write .*a file where a folder is expected"):
            write(path, {"a": 1})
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(StorageError, match=r"cannot write .*: embedded null"):
        write("no\0path", {"a": 1})


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission(stored):
    before = read(stored)
    stored.chmod(0o500)
    try:
        with pytest.raises(StorageError, match=r"Permission denied; what was .* is unchanged"):
            write(stored, {"a": 1})
    finally:
        stored.chmod(0o700)
    assert same(read(stored), before)


def fail_at(monkeypatch, name: str, number: int, code: int) -> None:
    """Let the `number`-th call of ``os.name`` fail as the system would."""
    original, calls = getattr(os, name), []

    def function(*arguments, **options):
        calls.append(arguments)
        if len(calls) == number:
            raise OSError(code, os.strerror(code))
        return original(*arguments, **options)

    monkeypatch.setattr(os, name, function)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize(
    ("name", "number"),
    [("fsync", 1), ("fsync", 2), ("fsync", 3), ("replace", 1), ("replace", 2), ("listdir", 1)],
)
def test_a_failing_disk_leaves_the_old_content(stored, monkeypatch, name, number, code):
    before, files = read(stored), sorted(os.listdir(stored))
    fail_at(monkeypatch, name, number, code)
    reason = os.strerror(code)
    with pytest.raises(StorageError, match=f"cannot write .*: {reason}; what was .* is unchanged"):
        write(stored, {"a": np.zeros(3)})
    monkeypatch.undo()
    assert same(read(stored), before)
    assert sorted(os.listdir(stored)) == files


def test_a_disk_that_fails_after_the_new_content_is_in_place(stored, monkeypatch):
    fail_at(monkeypatch, "fsync", 4, errno.EIO)
    with pytest.raises(StorageError, match="the new content is in place, but may not survive"):
        write(stored, {"a": 2})
    assert read(stored) == {"a": 2}


def test_file_systems_that_cannot_flush_folders(stored, monkeypatch):
    fail_at(monkeypatch, "fsync", 2, errno.EINVAL)
    assert round_trip(stored, {"a": 2}) == {"a": 2}


def test_leftovers_that_cannot_be_removed_are_no_failure(stored, monkeypatch):
    fail_at(monkeypatch, "unlink", 1, errno.EACCES)
    assert round_trip(stored, {"a": 2}) == {"a": 2}
    assert len(os.listdir(stored)) == 3


@pytest.mark.parametrize("new", [{"a": np.zeros(10_000)}, {"a": list(range(10_000))}])
def test_a_write_that_the_system_cuts_short(stored, new):
    """A limit on the size of files is a full disk that a test can have."""
    before, files = read(stored), sorted(os.listdir(stored))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"File too large; what was .* is unchanged"):
            write(stored, new)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert same(read(stored), before)
    assert sorted(os.listdir(stored)) == files


def test_a_reader_whose_arrays_were_just_replaced_reads_again(stored, monkeypatch):
    original, raced = folders.read_arrays, []

    def overtaken(folder, description):
        if len(raced) < 3:
            raced.append(True)
            write(folder, {"a": np.full(3, len(raced))})
        return original(folder, description)

    monkeypatch.setattr(folders, "read_arrays", overtaken)
    assert same(read(stored), {"a": np.full(3, 3)})


def test_an_interrupted_writer_leaves_what_the_header_names(stored, monkeypatch):
    """Ctrl-C between the last rename and the next line must not remove the new arrays."""
    original = os.replace

    def interrupted(source, target):
        original(source, target)
        if Path(target).name == "header.json":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(stored, {"a": np.full(3, 7)})
    assert same(read(stored), {"a": np.full(3, 7)})


def test_a_writer_of_the_old_content_is_not_robbed_of_its_arrays(tmp_path, monkeypatch):
    """Another writer replaces the old content and removes its arrays, between our two renames."""
    write(tmp_path, {"a": np.zeros(3)})
    original, overtaken = folders.place, []

    def place(path, data):
        if path.name == "header.json" and not overtaken:
            overtaken.append(True)
            write(tmp_path, {"a": np.ones(3)})
        original(path, data)

    monkeypatch.setattr(folders, "place", place)
    assert same(round_trip(tmp_path, {"a": np.zeros(3)}), {"a": np.zeros(3)})
