"""The benchmarks of learning and deciding say what they measured."""

from __future__ import annotations

import pytest
from rich.console import Console

from forewise_lab.bench import run_deciding_bench, run_training_bench
from forewise_lab.bench.learning import StepTimes


def test_training_bench_writes_what_it_saw(tmp_path):
    console = Console(record=True, width=120)
    found = run_training_bench(tmp_path, 1, console)
    assert min(found.plain, found.decoupled, found.combined) > 0
    written = (tmp_path / "training.md").read_text()
    assert f"{found.combined:.1f} ms" in written
    assert "combined step / decoupled step" in console.export_text()
    assert "revision" in (tmp_path / "training_machine.txt").read_text()


def test_bars_are_ratios():
    measured = {name: value for name, _, value in StepTimes(10.0, 11.0, 22.0).bars()}
    assert measured == {
        "combined step / decoupled step": 2.0,
        "decoupled step / the same in plain torch": 1.1,
    }


@pytest.mark.slow
def test_deciding_bench_measures_a_fresh_process(tmp_path):
    console = Console(record=True, width=120)
    run_deciding_bench(tmp_path, 5000, console)
    assert "5,000 contexts" in (tmp_path / "deciding.md").read_text()
    assert "decisions a second" in console.export_text()
