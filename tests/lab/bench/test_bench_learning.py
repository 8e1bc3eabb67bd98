"""The benchmarks of learning and deciding say what they measured."""

from __future__ import annotations

import pytest
from rich.console import Console

from forewise_lab.bench.learning import run_deciding_bench, run_training_bench, training_bars


def test_training_bench_writes_what_it_saw(tmp_path):
    console = Console(record=True, width=120)
    found = run_training_bench(tmp_path, 1, console)
    assert min(found.values()) > 0
    written = (tmp_path / "training.md").read_text()
    assert f"{found['combined'] / found['decoupled']:.2f}" in written
    assert "combined step / decoupled step" in console.export_text()
    assert "revision" in (tmp_path / "training_machine.txt").read_text()


def test_bars_are_ratios():
    bars = training_bars({"plain": 10.0, "decoupled": 11.0, "combined": 22.0})
    assert [(bar.measured, bar.met) for bar in bars] == [("2.00", True), ("1.10", True)]
    slow = training_bars({"plain": 10.0, "decoupled": 12.0, "combined": 30.0})
    assert [bar.met for bar in slow] == [False, False]


@pytest.mark.slow
def test_deciding_bench_measures_a_fresh_process(tmp_path):
    console = Console(record=True, width=120)
    run_deciding_bench(tmp_path, 5000, console)
    assert "5,000 contexts" in (tmp_path / "deciding.md").read_text()
    assert "decisions a second" in console.export_text()
