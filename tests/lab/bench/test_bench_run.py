"""A whole run: its files, its lines, and what is left of it when it is interrupted."""

import csv
import io
import os
import sys
from dataclasses import dataclass

import pytest
import torch
from rich.console import Console

from forewise_lab.bench.peers.base import Peer
from forewise_lab.bench.peers.solvers import ClarabelLoop, HighsLoop
from forewise_lab.bench.results import Quantity
from forewise_lab.bench.solver import memory_of, run_solver_bench
from forewise_lab.distributed import in_new_process
from forewise_lab.machine import one_core, write_whole

FILES = {"solver.csv", "solver.md", "solver.png", "solver.svg", "machine.txt"}


@dataclass(frozen=True)
class MissingPeer(Peer):
    """A peer that is not installed."""

    name: str = "absent"

    def missing(self):
        return "absent is not installed; install it with: pip install absent[all]"

    def supports(self, program):
        raise AssertionError("a missing peer must not be asked")

    def prepare(self, instance):
        raise AssertionError("a missing peer must not be built")


@dataclass(frozen=True)
class InterruptedPeer(ClarabelLoop):
    """Ctrl-C while the first linear program is built."""

    name: str = "interrupted"

    def prepare(self, instance):
        if instance.name == "pop":
            raise KeyboardInterrupt
        return super().prepare(instance)


def rows_of(folder):
    with (folder / "solver.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a quick run with a missing peer, and what it printed."""
    folder = tmp_path_factory.mktemp("bench") / "new"
    peers = (ClarabelLoop(), HighsLoop(), MissingPeer())
    console = Console(file=io.StringIO(), width=160)
    results = run_solver_bench(folder, 1, quick=True, peers=peers, console=console)
    assert len(results.rows) == len(rows_of(folder))
    return folder, console.file.getvalue()


def test_run_writes_all_files(finished):
    assert {path.name for path in finished[0].iterdir()} == FILES


def test_missing_peer_costs_a_line(finished):
    folder, printed = finished
    line = "absent is not installed; install it with: pip install absent[all]"
    assert f"not measured: {line}" in printed
    assert f"- {line}" in (folder / "solver.md").read_text(encoding="utf-8")


def test_table_has_times_errors_and_reasons(finished):
    rows = rows_of(finished[0])
    forward = [row for row in rows if row["quantity"] == Quantity.FORWARD]
    assert {row["instance"] for row in forward} == {"nvqp", "pop", "recourse"}
    assert all(float(row["median"]) > 0 for row in forward)
    errors = [float(row["relative_error"]) for row in forward if row["instance"] == "pop"]
    assert len(errors) == 2
    assert max(errors) < 1e-6
    skips = [row for row in rows if row["quantity"] == Quantity.SKIPPED]
    assert {row["peer"] for row in skips} == {"HiGHS loop"}


def test_markdown_has_the_tables_and_the_machine(finished):
    folder, _ = finished
    text = (folder / "solver.md").read_text(encoding="utf-8")
    assert "| peer | build | forward | forward + backward | error | ratio | note |" in text
    assert "| what | wanted | measured | verdict |" in text
    assert (folder / "machine.txt").read_text(encoding="utf-8") in text
    assert "torch" in text


def test_interrupted_run_keeps_what_was_measured(tmp_path):
    console = Console(file=io.StringIO())
    with pytest.raises(KeyboardInterrupt):
        run_solver_bench(tmp_path, 1, quick=True, peers=(InterruptedPeer(),), console=console)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    assert {row["instance"] for row in rows_of(tmp_path)} == {"nvqp"}
    assert "nvqp" in (tmp_path / "solver.md").read_text(encoding="utf-8")


def test_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    write_whole(path, "old")

    def fill_up(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fill_up)
        with pytest.raises(OSError, match="No space left"):
            write_whole(path, "half")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    write_whole(path, "new")
    assert path.read_text() == "new"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can take cores away")
def test_one_core_is_given_back():
    threads, cores = torch.get_num_threads(), os.sched_getaffinity(0)
    try:
        torch.set_num_threads(2)
        with one_core():
            assert torch.get_num_threads() == 1
            assert len(os.sched_getaffinity(0)) == 1
        assert torch.get_num_threads() == 2
        assert os.sched_getaffinity(0) == cores
    finally:
        torch.set_num_threads(threads)


def test_memory_of_a_larger_instance_is_seen():
    # In a process of its own: what this one has used before would hide it.
    found = in_new_process(memory_of, "pop", 8, 2048)
    # The scenarios alone are 8 × 2048 × 15 numbers of 8 bytes.
    assert found[Quantity.ABOVE_BASELINE] > 8 * 2048 * 15 * 8 / 1024**2
    assert found[Quantity.PEAK] > found[Quantity.ABOVE_BASELINE]
