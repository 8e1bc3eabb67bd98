"""Maps: the same results wherever they are computed, also when workers die."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from forewise.exceptions import ForewiseError, InvalidInputError, MissingDependencyError
from forewise_lab.distributed import Map, WorkerLostError


def square(number: int) -> int:
    return number**2


def fail_at_three(number: int) -> int:
    if number == 3:
        raise ZeroDivisionError("three is too many")
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

    results = Map().imap_unordered(square, tasks())
    assert next(results) == 0
    assert taken == [0]
    assert list(results) == [1, 4, 9]


def test_processes_give_all_results():
    found = list(Map(2).imap_unordered(square, range(8)))
    assert sorted(found) == [number**2 for number in range(8)]


def test_processes_have_one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert list(Map(2).imap_unordered(threads, [0])) == [("1", 1)]


def test_an_error_of_the_function_is_raised_here():
    with pytest.raises(ZeroDivisionError, match="three is too many"):
        list(Map(2).imap_unordered(fail_at_three, range(8)))


def test_the_tasks_of_a_killed_process_are_computed_again(tmp_path):
    tasks = [str(tmp_path / name) for name in ("a", "b.fatal", "c", "d", "e.fatal", "f")]
    found = list(Map(2).imap_unordered(die_once, tasks))
    assert sorted(found) == sorted(Path(task).name for task in tasks)


@pytest.mark.slow
def test_a_task_that_always_kills_is_given_up():
    with pytest.raises(WorkerLostError, match=r"5 times a worker died, with 1 tasks left"):
        list(Map(2).imap_unordered(die, [0]))


@pytest.mark.parametrize("n_jobs", [0, -1, 1.5, True, "two"])
def test_the_number_of_processes_is_checked(n_jobs):
    with pytest.raises(InvalidInputError, match="n_jobs"):
        Map(n_jobs)


def test_without_ray_it_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'forewise-lab\[ray\]'"):
        list(Map(ray="auto").imap_unordered(square, [1]))


@pytest.fixture
def cluster(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield "auto"
    ray.shutdown()


@pytest.mark.slow
def test_a_ray_cluster(cluster):
    found = list(Map(2, cluster).imap_unordered(square, range(5)))
    assert sorted(found) == [number**2 for number in range(5)]
    with pytest.raises(ZeroDivisionError, match="three is too many"):
        list(Map(2, cluster).imap_unordered(fail_at_three, range(8)))


@pytest.mark.slow
def test_a_cluster_that_is_not_there(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(ForewiseError, match="no Ray cluster could be reached at 'auto'"):
        list(Map(ray="auto").imap_unordered(square, [1]))
