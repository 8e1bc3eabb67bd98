"""Maps: the same results wherever they are computed, also when workers die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forewise.exceptions import InvalidInputError, MissingDependencyError
from forewise.parallel import Processes, RayMap, WorkerLostError


def square(number: int) -> int:
    return number**2


def fail_at_three(number: int) -> int:
    if number == 3:
        raise ZeroDivisionError("three is too many")
    return number


def slow_when_even(number: int) -> int:
    time.sleep(0.1 * (number % 2 == 0))
    return number


def die_once(marker: str) -> str:
    """The first worker to get here is killed."""
    path = Path(marker)
    if path.suffix == ".fatal" and not path.exists():
        path.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return path.name


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def threads(number: int) -> tuple[str | None, int]:
    import torch

    return os.environ.get("OMP_NUM_THREADS"), torch.get_num_threads()


def test_serial_takes_one_task_at_a_time():
    taken = []

    def tasks():
        for number in range(4):
            taken.append(number)
            yield number

    results = Processes().imap_unordered(square, tasks())
    assert next(results) == 0
    assert taken == [0]
    assert list(results) == [1, 4, 9]


def test_processes_give_all_results():
    found = list(Processes(2).imap_unordered(square, range(8)))
    assert sorted(found) == [number**2 for number in range(8)]


def test_results_in_the_order_of_the_tasks():
    assert list(Processes(2).imap(slow_when_even, range(6))) == list(range(6))


def test_processes_have_one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert list(Processes(2).imap_unordered(threads, [0])) == [("1", 1)]


def test_an_error_of_the_function_is_raised_here():
    with pytest.raises(ZeroDivisionError, match="three is too many"):
        list(Processes(2).imap_unordered(fail_at_three, range(8)))


def test_the_tasks_of_a_killed_process_are_computed_again(tmp_path):
    tasks = [str(tmp_path / name) for name in ("a", "b.fatal", "c", "d", "e.fatal", "f")]
    found = list(Processes(2).imap_unordered(die_once, tasks))
    assert sorted(found) == sorted(Path(task).name for task in tasks)


@pytest.mark.slow
def test_a_task_that_always_kills_is_given_up():
    with pytest.raises(WorkerLostError, match=r"5 times a worker died, with 1 tasks left"):
        list(Processes(2).imap_unordered(die, [0]))


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, True, "two"])
def test_the_number_of_processes_is_checked(n_jobs):
    with pytest.raises(InvalidInputError, match="n_jobs"):
        Processes(n_jobs)


def test_without_ray_it_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'forewise\[ray\]'"):
        list(RayMap(address="auto").imap_unordered(square, [1]))


def die_of_two(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.slow
def test_a_task_that_always_kills_takes_no_other_along():
    found = []
    with pytest.raises(WorkerLostError, match="with 1 tasks left"):
        found.extend(Processes(2).imap_unordered(die_of_two, range(6)))
    assert sorted(found) == [0, 1, 3, 4, 5]


RAY = """
import os, socket, sys
os.environ["RAY_AUTH_MODE"] = "disabled"
from forewise.parallel import RayMap, WorkerLostError
from forewise.exceptions import ForewiseError
from tests.test_parallel import die_of_two, fail_at_three, listening, square
assert list(RayMap(2).imap(square, range(5))) == [0, 1, 4, 9, 16]
import ray
from_here = listening()
assert from_here, "no port of Ray was found"
assert not {host for host in from_here if not host.startswith("127.")}, from_here
try:
    list(RayMap(2).imap_unordered(fail_at_three, range(8)))
    raise SystemExit("no error came")
except ZeroDivisionError as error:
    assert "three is too many" in str(error)
found = []
try:
    for number in RayMap(2).imap_unordered(die_of_two, range(5)):
        found.append(number)
    raise SystemExit("no error came")
except WorkerLostError as error:
    assert "5 times a worker died, with 1 tasks left" in str(error), error
assert sorted(found) == [0, 1, 3, 4], found
ray.shutdown()
try:
    list(RayMap(address="127.0.0.1:1").imap(square, [1]))
    raise SystemExit("no error came")
except ForewiseError as error:
    assert "no Ray cluster answers at '127.0.0.1:1'" in str(error), error
"""


def listening() -> set[str]:
    """Addresses that processes of Ray listen on, by `ss`."""
    lines = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout
    ours = [line.split() for line in lines.splitlines() if re.search(r"ray|gcs_server", line)]
    return {line[3].rpartition(":")[0].strip("[]").removeprefix("::ffff:") for line in ours}


@pytest.mark.slow
def test_a_ray_cluster_of_this_computer():
    """In a process of its own: Ray reads its settings when it is imported."""
    pytest.importorskip("ray")
    ended = subprocess.run(
        [sys.executable, "-c", RAY], capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
