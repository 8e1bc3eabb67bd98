"""Writers that are killed, that crash, that disturb each other.

Writers are forked, which costs milliseconds where a fresh process would import for seconds.
"""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from pathlib import Path

import numpy as np

from forewise.storage import read_folder, write_folder
from forewise.storage.ownership import named_in_header

KILLS = 100
WRITERS, WRITES = 4, 50
ARRAY_SIZE = 5_000
CHANGING_CALLS = ("open", "fsync", "replace", "unlink", "listdir")


def numbered(counter: int) -> dict:
    """Content that shows a mixture of two writings at once."""
    arrays = [np.full(ARRAY_SIZE + i, counter, dtype=np.int64) for i in range(3)]
    return {"counter": counter, "arrays": arrays, "last": {"counter": counter}}


def counter_of(folder: Path) -> int:
    """The number of what is stored; raises if it is not all of one writing."""
    _, content = read_folder(folder, kind="numbered", versions=[1])
    counter = content["counter"]
    sizes = [array.size for array in content["arrays"]]
    if sizes != [ARRAY_SIZE + i for i in range(3)]:
        raise AssertionError(f"sizes {sizes}")
    if not all((array == counter).all() for array in content["arrays"]):
        raise AssertionError("a mixture of two writings")
    if content["last"]["counter"] != counter:
        raise AssertionError("a mixture of two writings")
    return counter


def write_numbered(folder: Path, counter: int) -> None:
    write_folder(folder, numbered(counter), kind="numbered", version=1)


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


def skip_flushing() -> None:
    """In a child only: what a killed process has written stays, flushed to the disk or not.

    Without the wait for the disk, more of a child's time is spent where a kill could hurt.
    """
    os.fsync = lambda descriptor: None


def kill_writers(folder: Path, rng: random.Random) -> dict:
    """Kill a busy writer at random moments; what is stored must be whole and not too old."""
    write_numbered(folder, 0)
    counter, kills_amid, writings = 0, 0, 0
    for trial in range(KILLS):
        reports, reporting = os.pipe()

        def keep_writing(start=counter + 1, reporting=reporting, flushing=trial % 4 == 0):
            if not flushing:
                skip_flushing()
            for number in range(start, start + 10_000):
                write_numbered(folder, number)
                os.write(reporting, b"%d\n" % number)

        before = set(os.listdir(folder))
        child = fork(keep_writing)
        os.close(reporting)
        # On a busy machine a child may not get far; every second one is given a first writing.
        first = os.read(reports, 1) if trial % 2 else b""
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(reports, "rb") as file:
            reported = [int(line) for line in (first + file.read()).split()]
        complete = reported[-1] if reported else counter
        found = counter_of(folder)
        if not complete <= found <= complete + 1:
            raise AssertionError(f"{complete} was complete, but {found} was read")
        named = named_in_header(folder)
        kills_amid += bool(set(os.listdir(folder)) - before - named - {"header.json"})
        writings += len(reported)
        counter = found
    return {"kills": KILLS, "amid a writing": kills_amid, "writings": writings}


def crash_at_every_step(folder: Path) -> dict:
    """End the process before and after each call that changes the folder, one after another."""
    write_numbered(folder, 0)
    counter, step, found_new = 0, 0, 0
    while True:
        step += 1

        def crash(step=step, number=counter + 1):
            calls = 0
            originals = {name: getattr(os, name) for name in CHANGING_CALLS}
            for name in CHANGING_CALLS:

                def counted(*arguments, original=originals[name], **options):
                    nonlocal calls
                    calls += 1
                    if calls == step:
                        os._exit(9)
                    result = original(*arguments, **options)
                    calls += 1
                    if calls == step:
                        os._exit(9)
                    return result

                setattr(os, name, counted)
            write_numbered(folder, number)

        _, status = os.waitpid(fork(crash), 0)
        found = counter_of(folder)
        if found not in (counter, counter + 1):
            raise AssertionError(f"step {step}: {found} was read")
        found_new += found == counter + 1
        counter = found
        if os.waitstatus_to_exitcode(status) == 0:
            return {"steps": step - 1, "found new": found_new}
        if os.waitstatus_to_exitcode(status) != 9:
            raise AssertionError(f"step {step} ended with status {status}")


def crowd_of_writers(folder: Path) -> dict:
    """Several writers at once, some of the same content, while a reader reads without a pause."""
    write_numbered(folder, 0)

    def write_some():
        skip_flushing()
        for number in range(WRITES):
            write_numbered(folder, number % 3)

    children = {fork(write_some) for _ in range(WRITERS)}
    reads = 0
    while children:
        counter_of(folder)
        reads += 1
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            children.discard(child)
            if status != 0:
                raise AssertionError(f"a writer ended with status {status}")
    leftovers = len(os.listdir(folder)) - 2
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    write_numbered(folder, 1)
    return {"reads": reads, "left": leftovers, "left at last": len(os.listdir(folder)) - 2}


def test_killed_writers_leave_the_old_content_or_the_new(tmp_path):
    seen = kill_writers(tmp_path / "folder", random.Random(0))
    print(seen)
    assert seen["amid a writing"] > KILLS // 10  # otherwise the kills proved little
    assert seen["writings"] >= KILLS // 2


def test_a_crash_before_or_after_any_step_leaves_the_old_content_or_the_new(tmp_path):
    seen = crash_at_every_step(tmp_path / "folder")
    print(seen)
    assert seen["steps"] > 20
    assert 1 < seen["found new"] < seen["steps"]


def test_a_crowd_of_writers_and_a_reader_do_not_disturb_each_other(tmp_path):
    seen = crowd_of_writers(tmp_path / "folder")
    print(seen)
    assert seen["reads"] > 10
    assert seen["left at last"] == 0
