"""The bench of SMPS programs: what peers are given, how they are checked, what is reported."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
import torch
from rich.console import Console
from tests.smps.files import read, with_stoch
from tests.smps.test_distribution import BLOCKS
from tests.smps.test_reading import ELEMENTS

import forewise as fw
from forewise_lab.bench.peers.base import PeerFailedError
from forewise_lab.bench.results import Measurement, Measurements, Quantity
from forewise_lab.bench.smps import report, run
from forewise_lab.bench.smps.extensive import extensive_lp
from forewise_lab.bench.smps.instances import PLANTS, instance, plants, scenarios_of
from forewise_lab.bench.smps.peers import FOREWISE, PEERS, SOLVED, Outcome, built, timed
from forewise_lab.bench.smps.run import run_smps_bench
from forewise_lab.bench.smps.worker import Worker


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_solves_the_same_program(name):
    pytest.importorskip(PEERS[name].package or "forewise")
    program = plants(3, 2, 4)
    assert program.n_scenarios == 16
    scenarios = scenarios_of(program, 100)
    call, lp, _ = built(PEERS[name], program, scenarios, 20.0)
    found = timed(call, lp)
    wanted = fw.ReferenceSolver().solve_program(program.program(scenarios))
    assert found.verdict == SOLVED
    assert found.objective == pytest.approx(float(wanted.objective), rel=1e-6)
    assert found.violation <= 1e-6


STOCHS = {name: with_stoch(lines) for name, (lines, _) in ELEMENTS.items()}
STOCHS["blocks"] = with_stoch(BLOCKS, "BLOCKS DISCRETE")


@pytest.mark.parametrize("name", STOCHS)
def test_the_extensive_form_is_the_program_that_forewise_solves(name, tmp_path):
    """It is made from the files' numbers, not from the blocks: one checks the other."""
    program = read(tmp_path, stoch=STOCHS[name])
    scenarios = program.scenarios()
    highs = built(PEERS["HiGHS simplex"], program, scenarios, 20.0)
    solution = fw.ReferenceSolver().solve_program(program.program(scenarios))
    assert timed(*highs[:2]).objective == pytest.approx(float(solution.objective), rel=1e-9)
    x = torch.cat([solution.decision[0], solution.recourse[0].flatten()]).numpy()
    assert highs[1].violation(x) < 1e-9


def test_violations_are_seen():
    program = plants(3, 2, 4)
    lp = extensive_lp(program, program.scenarios())
    x = np.zeros(len(lp.cost))
    assert lp.violation(x) == pytest.approx(12 / 13)  # of the least capacity
    x[0] = -2.0
    assert lp.violation(x) >= 14 / 13
    x[:] = 1e3
    assert lp.violation(x) > 30


def test_large_programs_are_sampled_with_a_fixed_seed():
    program = instance(PLANTS)
    assert program.n_scenarios == 25**6
    first, second = scenarios_of(program, 7), scenarios_of(program, 7)
    assert torch.equal(first.values, second.values)
    assert first.n_scenarios == 7


def outcome(objective, violation=0.0, verdict=SOLVED):
    return Outcome(verdict, objective, violation, 1.0)


def test_the_best_answer_keeps_the_constraints():
    errors = run.relative_errors(
        None,
        {
            "right": outcome(100.0),
            "near": outcome(100.00001),
            "cheating": outcome(50.0, violation=0.1),
            "wrong": outcome(101.0),
            "nothing": outcome(math.nan, math.nan),
        },
    )
    assert errors["right"] == 0
    assert errors["near"] == pytest.approx(1e-7)
    assert errors["cheating"] == pytest.approx(0.5)
    assert errors["wrong"] == pytest.approx(0.01)
    assert errors["nothing"] == math.inf
    assert run.relative_errors(None, {"alone": outcome(1.0, 1.0)}) == {"alone": math.inf}


def row(name, size, peer, seconds=None, note="", quantity=Quantity.FORWARD):
    if seconds is None:
        return Measurement(name, 1, size, peer, Quantity.SKIPPED, note=note)
    return Measurement(name, 1, size, peer, quantity, "s", seconds, seconds, 3, 0.0, note)


def made_up():
    return Measurements(
        [
            row("a", 100, FOREWISE, 1.0),
            row("a", 100, "PIQP", 0.1, "failed: 1e-02 from the best answer"),
            row("a", 100, "Clarabel", 8.0),
            row("a", 100, "HiGHS simplex", 20.0),
            row("a", 500, FOREWISE, 2.0),
            row("a", 500, "PIQP", 4.0),
            row("a", 500, "Clarabel", note="left out: a solve would take over 40 s"),
            row("b", 16, FOREWISE, 2.0),
            row("b", 16, "PIQP", 1.0),
            row("c", 50, FOREWISE, 1.0),
            row("c", 50, "PIQP", 1.0),
            row("c", 100, FOREWISE, note="failed: its process ended"),
            row("c", 100, "PIQP", 1.0),
            row("a", 100, report.GROWTH, 1.0),
            row("a", 10_000, report.GROWTH, 120.0),
        ]
    )


def test_ratios_are_to_the_fastest_right_answer():
    found = report.ratios(made_up())
    assert found == {("a", 100): 8, ("a", 500): 2, ("b", 16): 0.5, ("c", 50): 1, ("c", 100): 0}
    # b has no more scenarios; c, M = 50 does not count.
    assert set(report.counted_ratios(made_up())) == set(found) - {("c", 50)}
    assert report.geometric_mean([8, 2]) == pytest.approx(4)
    assert report.geometric_mean([8, 0]) == 0
    assert math.isnan(report.geometric_mean([]))


def test_the_page_shows_failures_and_misses():
    page = report.smps_page(made_up(), ["ssn is not in nowhere"], "cpu x\n", 40.0, 3).as_markdown()
    assert "| a | 100 | 1 s | 20 s | 8 s | 100 ms ✗ | 8.00× |" in page
    assert "| a | 500 | 2 s | — | > | 4 s | 2.00× |" in page
    assert "| c | 100 | ✗ | — | — | 1 s | 0.00× |" in page
    assert "a, M = 100, PIQP: failed: 1e-02 from the best answer" in page
    assert "ssn is not in nowhere" in page
    assert "| a: exponent of time in M | ≤ 1.05 | 1.040 | met |" in page
    assert [axes.get_title(loc="left") for axes in report.smps_figure(made_up()).axes] == [
        *("a: one solve", "c: one solve")
    ]


def test_rows_survive_the_file_and_serve_the_same_machine_only(tmp_path):
    results = made_up()
    (tmp_path / "smps.csv").write_text(results.as_csv())
    (tmp_path / "smps_machine.txt").write_text("cpu x\ncommand one\n")
    assert run._kept(tmp_path, "cpu x\ncommand two\n") == results.rows
    assert run._kept(tmp_path, "cpu y\n") == []
    assert run._is_complete(results, "a", 100, [FOREWISE, "PIQP"])
    count = len(results.rows)
    assert not run._is_complete(results, "a", 100, [FOREWISE, "Moreau"])
    assert len(results.rows) == count - 4  # the growth's row stays


def test_unknown_names_are_reported(tmp_path):
    for options in ({"names": ["plants", "lands9"]}, {"peers": ["Gurobi"]}):
        with pytest.raises(fw.exceptions.InvalidInputError, match=r"lands9|Gurobi"):
            run_smps_bench(tmp_path / "new", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_quick_run_and_its_resumption(tmp_path):
    console = Console(record=True, width=150)
    options = {"quick": True, "names": ["plants"], "peers": [FOREWISE, "Clarabel"]}
    first = run_smps_bench(tmp_path, 1, console=console, **options)
    assert "plants, M = 6, growth" in console.export_text()
    assert not any("failed" in line.note for line in first.rows)
    with (tmp_path / "smps.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(first.rows) == 14
    again = run_smps_bench(tmp_path, 1, console=console, **options)
    assert again.rows == first.rows


@pytest.mark.slow
def test_a_worker_tells_what_its_solver_raised_and_starts_again():
    worker = Worker("Clarabel", 20.0)
    try:
        with pytest.raises(PeerFailedError, match="nothing was built"):
            worker.solve()
        assert worker.build(PLANTS, 2) > 0
        assert worker.solve().verdict == SOLVED
        peak, above = worker.memory()
        assert peak > above >= 0
    finally:
        worker.stop()
