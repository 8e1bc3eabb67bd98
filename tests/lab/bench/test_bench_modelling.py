"""The benchmark of problems written in CVXPY: it runs, and its tables have every row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from rich.console import Console

from forewise.scenarios import Scenarios
from forewise.solvers import solve
from forewise_lab.bench import cvxpy_problems as written
from forewise_lab.bench import instances
from forewise_lab.bench.cvxpy_bench import (
    AT_ONCE,
    BUILT_IN,
    CLOSED_FORM,
    DIFFERENCES,
    FOREWISE,
    IN_CVXPY,
    LOOP,
    Findings,
    run_cvxpy_bench,
)
from forewise_lab.bench.peers.base import PeerFailedError
from forewise_lab.bench.peers.cvxpylayers_layer import (
    SOLVE_AND_DIFFERENTIATE,
    CvxpyLayersPeer,
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
    assert list(found.built_in.index) == ["nv", "nvqp", "pop"]
    assert len(found.constructions) == 5
    for own in found.layers.values():
        assert list(own.index) == [FOREWISE, LOOP, AT_ONCE]
        # diffcp's tolerance is its own.
        assert own["decisions"].max() < 1e-3
    assert found.built_in[DIFFERENCES].max(axis=None) <= 1e-6
    for reported in (text, shown):
        for bar in found.bars():
            assert bar.what in reported
        for title in (*found.built_in["title"], LOOP, AT_ONCE):
            assert title in reported
    assert "—" not in next(line for line in text.splitlines() if line.startswith(f"| {LOOP}"))
    assert "revision" in (tmp_path / "new" / "cvxpy_machine.txt").read_text()


def test_without_cvxpylayers_the_rest_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(CvxpyLayersPeer, "missing", lambda self: "cvxpylayers is not installed")
    found, text, shown = quick_run(tmp_path)
    for reported in (text, shown):
        assert "Not measured: cvxpylayers is not installed." in reported
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


def findings(written_seconds=1.0, loop=60.0, construction=0.05):
    pair = {"title": "one item", BUILT_IN: 1.0, IN_CVXPY: written_seconds, CLOSED_FORM: np.nan}
    times = pd.DataFrame({"build": {FOREWISE: 1.0, LOOP: loop, AT_ONCE: 20.0}})
    times = times.assign(**{"forward + backward": times["build"], "decisions": 0, "gradients": 0})
    made = pd.DataFrame({"construction": {"nv": construction, "pop": 0.01}})
    pairs = pd.DataFrame([pair | {"decisions": 1e-9, "gradients": 1e-7}], index=["nv"])
    return Findings(pairs, {64: times}, made, 1.0)


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


def test_turns_go_round_after_a_warm_up():
    called = []

    def fail():
        raise PeerFailedError("no")

    calls = {"a": lambda: called.append("a"), "b": lambda: called.append("b"), "c": fail}
    reported = []
    failures = {}
    timed = take_turns(calls, 2, reported.append, failures)
    assert list(failures) == ["c"]
    assert list(timed) == ["a", "b"]
    assert called[:4] == ["a", "a", "b", "b"]
    assert [line for line in reported if "turn" in line] == [
        "a: turn 1 of 2", "b: turn 1 of 2", "a: turn 2 of 2", "b: turn 2 of 2",
    ]  # fmt: skip
