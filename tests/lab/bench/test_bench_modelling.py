"""The benchmark of problems written in CVXPY: it runs, and its tables have every row."""

from __future__ import annotations

import pytest
import torch
from rich.console import Console

from forewise.scenarios import Scenarios
from forewise.solvers import solve
from forewise_lab.bench import cvxpy_problems as written
from forewise_lab.bench import instances, run_cvxpy_bench
from forewise_lab.bench.cvxpy_bench import (
    AT_ONCE,
    FOREWISE,
    LOOP,
    AgainstBuiltIn,
    AgainstLayers,
    Construction,
    Findings,
)
from forewise_lab.bench.peers import CvxpyLayersPeer, PeerFailedError
from forewise_lab.bench.peers.cvxpylayers_layer import (
    SOLVE_AND_DIFFERENTIATE,
    call_layer,
    make_layer,
    quiet_conversions,
)
from forewise_lab.bench.timing import take_turns


def needs_layers():
    line = CvxpyLayersPeer().missing()
    if line is not None:
        pytest.skip(line)


def quick_run(folder):
    console = Console(record=True, width=200)
    found = run_cvxpy_bench(folder, 1, console, quick=True)
    return found, (folder / "cvxpy.md").read_text(), console.export_text()


def test_quick_run_has_every_row(tmp_path):
    needs_layers()
    found, text, shown = quick_run(tmp_path / "new")
    assert [row.name for row in found.built_in] == ["nv", "nvqp", "pop"]
    assert len(found.constructions) == 5
    for row in found.layers:
        assert list(row.both) == list(row.build) == [FOREWISE, LOOP, AT_ONCE]
        # diffcp's tolerance is its own.
        assert max(row.decisions.values()) < 1e-3
    for row in found.built_in:
        assert max(row.decisions, row.gradients) <= 1e-6
    for told in (text, shown):
        for bar in found.bars():
            assert bar.what in told
        for row in (*found.built_in, *found.layers):
            assert row.title in told
        assert LOOP in told
        assert AT_ONCE in told
    assert "—" not in next(line for line in text.splitlines() if line.startswith(f"| {LOOP}"))
    assert "revision" in (tmp_path / "new" / "cvxpy_machine.txt").read_text()


def test_without_cvxpylayers_the_rest_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(CvxpyLayersPeer, "missing", lambda self: "cvxpylayers is not installed")
    found, text, shown = quick_run(tmp_path)
    assert "not measured: cvxpylayers is not installed" in shown
    assert "Not measured: cvxpylayers is not installed." in text
    assert [bar.met for bar in found.bars() if LOOP in bar.what] == [None] * 3


@pytest.mark.parametrize("write", [written.lifted_in_a_loop, written.lifted_at_once])
def test_the_lifted_problem_is_the_same_problem(write):
    needs_layers()
    instance = instances.nvqp(n_scenarios=5, n_contexts=3)
    lifted = write(instance.problem, 5)
    layer = make_layer(lifted.problem, lifted.parameters, [lifted.decision])
    passes = []
    for solver in ("layer", "forewise"):
        leaf = instance.leaves()["scenarios"]
        if solver == "layer":
            # diffcp's default, LSQR, is inexact here.
            arguments = {**SOLVE_AND_DIFFERENTIATE, "mode": "dense"}
            (decision,) = call_layer(layer, lifted.values(leaf), arguments)
        else:
            decision = solve(instance.problem, Scenarios(leaf)).decision
        with quiet_conversions():
            (gradient,) = torch.autograd.grad((decision * instance.direction()).sum(), leaf)
        passes.append((decision, gradient))
    for theirs, ours in zip(*passes, strict=True):
        assert torch.allclose(theirs, ours, rtol=1e-3, atol=1e-3)


def findings(written_seconds=1.0, loop=60.0, construction=0.05, share=1.0):
    pair = AgainstBuiltIn("nv", "one item", 1.0, written_seconds, None, 1e-9, 1e-7)
    times = {FOREWISE: 1.0, LOOP: loop, AT_ONCE: 20.0}
    layers = AgainstLayers("lifted", 64, times, times, times, times)
    made = [Construction(name, 100, 32, construction, {16: 0.001}) for name in ("nv", "pop")]
    return Findings([pair], [layers], made, 5, 3, None, share)


@pytest.mark.parametrize(
    ("found", "met"),
    [
        (findings(), [True, True, True, True, True]),
        (findings(written_seconds=2.1), [False, True, True, True, True]),
        (findings(loop=49.0), [True, True, False, True, True]),
        (findings(loop=9.0), [True, True, False, False, True]),
        (findings(construction=0.11), [True, True, True, True, False]),
    ],
)
def test_bars_are_judged(found, met):
    assert [bar.met for bar in found.bars()] == met


def test_a_shared_core_is_told():
    assert "this run had 50% of it" in findings(share=0.5).as_markdown()
    assert "Other work" not in findings().as_markdown()


def test_turns_go_round_after_a_warm_up():
    called = []

    def fail():
        raise PeerFailedError("no")

    calls = {"a": lambda: called.append("a"), "b": lambda: called.append("b"), "c": fail}
    told = []
    failures = {}
    timed = take_turns(calls, 2, told.append, failures)
    assert list(failures) == ["c"]
    assert list(timed) == ["a", "b"]
    assert called[:4] == ["a", "a", "b", "b"]
    assert [line for line in told if "turn" in line] == [
        "a: turn 1 of 2", "b: turn 1 of 2", "a: turn 2 of 2", "b: turn 2 of 2",
    ]  # fmt: skip
