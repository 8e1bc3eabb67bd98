"""Maps: the same results wherever they are computed, also when workers die."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from forewise.exceptions import ForewiseError, InvalidInputError, MissingDependencyError
from forewise_lab.distributed import ProcessMap, RayMap, SerialMap, WorkerLostError


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


def own_addresses(number: int) -> list[str]:
    """Addresses that processes called ray or gcs listen on, in hexadecimal."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    lines += [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    listening = {line[9]: line[1] for line in lines if line[3] == "0A"}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "comm").read_text()
            sockets = [os.readlink(link) for link in (process / "fd").iterdir()]
        except OSError:
            continue
        if name.startswith(("ray", "gcs")):
            inodes = [link[8:-1] for link in sockets if link.startswith("socket:")]
            found += [listening[inode] for inode in inodes if inode in listening]
    return found


def test_serial_takes_one_task_at_a_time():
    taken = []

    def tasks():
        for number in range(4):
            taken.append(number)
            yield number

    results = SerialMap().imap_unordered(square, tasks())
    assert next(results) == 0
    assert taken == [0]
    assert list(results) == [1, 4, 9]


def test_processes_give_all_results_and_take_no_task_early():
    taken = []

    def tasks():
        for number in range(8):
            taken.append(number)
            yield number

    results = ProcessMap(2).imap_unordered(square, tasks())
    found = [next(results)]
    assert len(taken) <= 3
    found += results
    assert sorted(found) == [number**2 for number in range(8)]


def test_processes_have_one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert list(ProcessMap(1).imap_unordered(threads, [0])) == [("1", 1)]


def test_an_error_of_the_function_is_raised_here():
    with pytest.raises(ZeroDivisionError, match="three is too many"):
        list(ProcessMap(2).imap_unordered(fail_at_three, range(8)))


def test_the_tasks_of_a_killed_process_are_computed_again(tmp_path):
    tasks = [str(tmp_path / name) for name in ("a", "b.fatal", "c", "d", "e.fatal", "f")]
    found = list(ProcessMap(2).imap_unordered(die_once, tasks))
    assert sorted(found) == sorted(Path(task).name for task in tasks)


@pytest.mark.slow
def test_a_task_that_always_kills_is_given_up():
    with pytest.raises(WorkerLostError, match=r"5 workers died while computing 0: .*memory"):
        list(ProcessMap(1).imap_unordered(die, [0]))


@pytest.mark.parametrize("n_jobs", [0, -1, 1.5, True, "two"])
def test_the_number_of_processes_is_checked(n_jobs):
    with pytest.raises(InvalidInputError, match="n_jobs"):
        ProcessMap(n_jobs)


def test_without_ray_it_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'forewise-lab\[ray\]'"):
        list(RayMap().imap_unordered(square, [1]))


@pytest.fixture
def without_authentication(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")


@pytest.mark.slow
@pytest.mark.usefixtures("without_authentication")
class TestRay:
    """One cluster per test: starting it is a part of what is tested."""

    def test_results_and_a_killed_worker(self, tmp_path):
        tasks = [str(tmp_path / name) for name in ("a", "b.fatal", "c", "d", "e", "f")]
        found = list(RayMap(n_jobs=2).imap_unordered(die_once, tasks))
        assert sorted(found) == sorted(Path(task).name for task in tasks)

    def test_it_listens_on_the_loopback_interface_only(self):
        (found,) = RayMap(n_jobs=1).imap_unordered(own_addresses, [0])
        assert found
        loopback = ("0100007F:", "0000000000000000FFFF00000100007F:")
        assert [address for address in found if not address.startswith(loopback)] == []

    def test_errors(self):
        with pytest.raises(ZeroDivisionError, match="three is too many"):
            list(RayMap(n_jobs=2).imap_unordered(fail_at_three, range(8)))
        with pytest.raises(ForewiseError, match="no Ray cluster could be reached at 'auto'"):
            list(RayMap("auto").imap_unordered(square, [1]))
