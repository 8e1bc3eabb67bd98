"""Where is written and what is removed; disks that fail, writers that crash or meet others."""

from __future__ import annotations

import errno
import os
import resource
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest

from forewise.exceptions import StorageError
from tests.storage.helpers import read, round_trip, same, write

CHANGING_CALLS = ("open", "fsync", "replace", "unlink", "listdir")


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
    names = [f"{kind}-{i:016x}" for i in range(2) for kind in ("arrays", ".forewise")]
    names = [name + (".tmp" if name[0] == "." else ".safetensors") for name in names]
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
        with pytest.raises(StorageError, match="a file where a folder is expected"):
            write(path, {"a": 1})
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(StorageError, match="embedded null"):
        write("no\0path", {"a": 1})


def test_files_get_the_users_permissions(tmp_path):
    mask = os.umask(0o027)
    try:
        write(tmp_path, {"a": np.zeros(2)})
    finally:
        os.umask(mask)
    assert {stat.S_IMODE((tmp_path / n).stat().st_mode) for n in os.listdir(tmp_path)} == {0o640}


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission(stored):
    before = read(stored)
    stored.chmod(0o500)
    try:
        with pytest.raises(StorageError, match=r"Permission denied; .* is unchanged"):
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


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize(
    ("name", "number"),
    [("fsync", 1), ("fsync", 2), ("fsync", 3), ("replace", 1), ("replace", 2), ("listdir", 1)],
)
def test_a_failing_disk_leaves_the_old_content(stored, monkeypatch, name, number, code):
    before, files = read(stored), sorted(os.listdir(stored))
    fail_at(monkeypatch, name, number, code)
    with pytest.raises(StorageError, match=rf"{os.strerror(code)}; .* is unchanged"):
        write(stored, {"a": np.zeros(3)})
    monkeypatch.undo()
    assert same(read(stored), before)
    assert sorted(os.listdir(stored)) == files


def test_a_disk_that_fails_after_the_new_content_is_in_place(stored, monkeypatch):
    fail_at(monkeypatch, "fsync", 4, errno.EIO)
    with pytest.raises(StorageError, match="the new content is in place, but may not survive"):
        write(stored, {"a": 2})
    assert read(stored) == {"a": 2}


@pytest.mark.parametrize(
    ("name", "number", "code", "left"),
    [("fsync", 2, errno.EINVAL, 2), ("unlink", 1, errno.EACCES, 3)],
    ids=["file systems that cannot flush folders", "leftovers that cannot be removed"],
)
def test_failures_that_do_not_matter(stored, monkeypatch, name, number, code, left):
    fail_at(monkeypatch, name, number, code)
    assert round_trip(stored, {"a": 2}) == {"a": 2}
    assert len(os.listdir(stored)) == left


@pytest.mark.parametrize("new", [{"a": np.zeros(10_000)}, {"a": list(range(10_000))}])
def test_a_write_that_the_system_cuts_short(stored, new):
    """A limit on the size of files is a full disk that a test can have."""
    before, files = read(stored), sorted(os.listdir(stored))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"File too large; .* is unchanged"):
            write(stored, new)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert same(read(stored), before)
    assert sorted(os.listdir(stored)) == files


def test_a_reader_whose_arrays_were_just_replaced_reads_again(stored, monkeypatch):
    original, raced = os.open, []

    def overtaken(path, *arguments, **options):
        if "arrays-" in str(path) and len(raced) < 3:
            raced.append(True)
            write(stored, {"a": np.full(3, len(raced))})
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "open", overtaken)
    assert same(read(stored), {"a": np.full(3, 3)})


def at_the_header(monkeypatch, before=None, after=None) -> None:
    """Do something once, just before or after a header is renamed into place."""
    original, done = os.replace, []

    def replace(source, target):
        at = Path(target).name == "header.json" and not done
        if at:
            done.append(True)
            before and before()
        original(source, target)
        if at and after:
            raise after

    monkeypatch.setattr(os, "replace", replace)


def test_an_interrupted_writer_leaves_what_the_header_names(stored, monkeypatch):
    """Ctrl-C between the last rename and the next line must not remove the new arrays."""
    at_the_header(monkeypatch, after=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write(stored, {"a": np.full(3, 7)})
    assert same(read(stored), {"a": np.full(3, 7)})


def test_two_writers_of_the_same_content_do_not_remove_each_others_arrays(tmp_path, monkeypatch):
    """One replaces the old content and removes its arrays, between the other's two renames."""
    write(tmp_path, {"a": np.zeros(3)})
    at_the_header(monkeypatch, before=lambda: write(tmp_path, {"a": np.ones(3)}))
    assert same(round_trip(tmp_path, {"a": np.zeros(3)}), {"a": np.zeros(3)})


def fork(function) -> int:
    """Run `function` in a child that ends with it, whatever happens."""
    with warnings.catch_warnings():
        # Threads of pytest or a library do not matter to a child that only writes a folder.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return child


def numbered(counter: int) -> dict:
    """Content that shows a mixture of two writings."""
    return {"counter": counter, "arrays": [np.full(5_000 + i, counter) for i in range(3)]}


def counter_in(folder: Path) -> int:
    """The number of what is stored, which must be all of one writing."""
    found = read(folder)
    assert same(found, numbered(found["counter"]))
    return found["counter"]


def crash_at(step: int, folder: Path, number: int) -> None:
    """In a child: end the process before or after a call that changes the folder."""
    calls = 0

    def watched(original):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == step:
                os._exit(9)
            result = original(*arguments, **options)
            calls += 1
            if calls == step:
                os._exit(9)
            return result

        return call

    for name in CHANGING_CALLS:
        setattr(os, name, watched(getattr(os, name)))
    write(folder, numbered(number))


def test_a_crash_before_or_after_any_step_leaves_the_old_content_or_the_new(tmp_path):
    write(tmp_path, numbered(0))
    counter, step, found_new, code = 0, 0, 0, 9
    while code:
        step += 1
        child = fork(lambda step=step, number=counter + 1: crash_at(step, tmp_path, number))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9)
        found = counter_in(tmp_path)
        assert found in (counter, counter + 1)
        found_new += found == counter + 1
        counter = found
    assert step > 20
    assert 1 < found_new < step


def test_many_writers_and_a_reader_do_not_disturb_each_other(tmp_path):
    write(tmp_path, numbered(0))

    def write_some():
        os.fsync = lambda descriptor: None  # in a child: more time where writers can meet
        for number in range(30):
            write(tmp_path, numbered(number % 3))

    children, reads = {fork(write_some) for _ in range(4)}, 0
    while children:
        counter_in(tmp_path)
        reads += 1
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            children.discard(child)
            assert status == 0
    assert reads > 10
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    write(tmp_path, numbered(1))
    assert len(os.listdir(tmp_path)) == 2
