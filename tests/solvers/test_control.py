"""How long paths are followed, their log, and what the compiled core refuses."""

from __future__ import annotations

import _thread
import threading
import time

import numpy as np
import pytest
import torch

import forewise as fw
from forewise import _core
from forewise.exceptions import InsufficientMemoryError, InvalidInputError
from forewise.problems.bounds import with_bounds_as_rows
from forewise.solvers.interior_point.core import (
    Iteration,
    as_arrays,
    follow_paths,
    no_ends,
    solve_adjoints,
)
from tests.solvers.test_sparse import random_block, random_program


def large_program(n: int = 400) -> fw.ScenarioProgram:
    """One that takes some iterations of some milliseconds."""
    rng = np.random.default_rng(0)
    G = random_block(rng, 2 * n, n, (1,), density=0.05)
    h = G.times(torch.zeros(1, n).double()) + 1.0
    return fw.ScenarioProgram([[1.0]], rng.standard_normal((1, n)), G=G, h=h, P=np.eye(n)[None])


def test_a_log_is_reported_every_iteration_of_every_context():
    reported: list[Iteration] = []
    program = random_program(0, B=2)
    solution = fw.solve_program(program, fw.InteriorPointSolver(log=reported.append))
    for i, iterations in enumerate(solution.iterations.tolist()):
        own = [entry for entry in reported if entry.context == i]
        assert [entry.iteration for entry in own] == list(range(iterations))
        assert own[-1].mu < own[0].mu


def test_what_a_log_raises_ends_the_solve():
    def refuse(entry: Iteration) -> None:
        raise RuntimeError(f"enough after {entry.iteration}")

    with pytest.raises(RuntimeError, match="enough after 0"):
        fw.solve_program(random_program(0), fw.InteriorPointSolver(log=refuse))


def test_a_time_limit_stops_all_contexts():
    solver = fw.InteriorPointSolver(time_limit=1e-9)
    solution = fw.solve_program(random_program(0, B=3), solver, on_failure="return")
    assert solution.status == (fw.Status.STOPPED,) * 3
    assert bool(solution.decision.isnan().all())
    with pytest.raises(InvalidInputError, match="time_limit must be positive"):
        fw.InteriorPointSolver(time_limit=0.0)


def test_a_stopped_context_is_not_solved_by_anyone_else():
    solver = fw.AutoSolver(general=fw.InteriorPointSolver(time_limit=1e-9))
    problem = fw.Portfolio([0.3, 0.6], 0.4, budget=1.0)
    scenarios = fw.Scenarios(np.random.default_rng(0).normal(size=(2, 9, 2)))
    solution = fw.solve(problem, scenarios, solver, on_failure="return")
    assert solution.status == (fw.Status.STOPPED,) * 2


def test_too_little_memory_is_said_before_any_is_taken():
    """A hundred million variables of recourse, of which none is ever there."""
    M, k = 50_000, 2_000
    program = fw.ScenarioProgram(
        torch.full((1, M), 1.0 / M), [[1.0]], d=torch.ones(1, 1, k), lower=[[0.0]],
        recourse_lower=torch.zeros(1, 1, k),
    )  # fmt: skip
    with pytest.raises(InsufficientMemoryError, match=r"solving needs .* GB of working memory"):
        fw.solve_program(program, fw.InteriorPointSolver())


def test_ctrl_c_is_heard():
    program = large_program()
    solver = fw.InteriorPointSolver(log=lambda _: time.sleep(0.1))
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fw.solve_program(program, solver)
    timer.join()


def test_the_core_refuses_arrays_that_do_not_fit():
    rng = np.random.default_rng(0)
    arrays = as_arrays(with_bounds_as_rows(random_program(1, B=2)))
    for name in arrays._fields:
        block = getattr(arrays, name)
        if not isinstance(block, np.ndarray) or not block.size:
            continue
        wrong = [block[..., :-1], block[None], block[..., None], np.zeros((3, *block.shape[1:]))]
        for changed in wrong:
            with pytest.raises((ValueError, TypeError, RuntimeError)):
                follow_paths(arrays._replace(**{name: changed}), 1e-9, 50, np.zeros(2))
        # Other strides and types hold the same numbers.
        same = [np.asfortranarray(block), block.astype(np.longdouble)]
        for changed in same:
            try:
                found = follow_paths(arrays._replace(**{name: changed}), 1e-9, 50, np.zeros(2))
            except (ValueError, TypeError, RuntimeError):
                continue
            expected = follow_paths(arrays, 1e-9, 50, np.zeros(2))
            np.testing.assert_array_equal(found[0].points.z, expected[0].points.z)
    with pytest.raises((ValueError, TypeError)):
        follow_paths(arrays, 1e-9, 50, rng.standard_normal(5))


def test_the_core_refuses_patterns_that_do_not_fit():
    arrays = as_arrays(with_bounds_as_rows(random_program(1, B=2)))
    starts, columns, entries = arrays.T
    for wrong in (
        (starts[:-1], columns, entries),
        (starts[::-1].copy(), columns, entries),
        (starts + 1, columns, entries),
        (starts, columns + 1000, entries),
        (starts, columns[::-1].copy() - 5, entries),
        (starts, columns[:-1], entries),
        (starts, columns, entries[..., :-1]),
        (starts, columns),
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            _core.describe(arrays._replace(T=wrong))


def test_outputs_are_never_copies():
    arrays = as_arrays(with_bounds_as_rows(random_program(1, B=2)))
    ends = no_ends(arrays, 2)
    points = ends.points._replace(z=ends.points.z.astype(np.float32))
    settings = (1, 1e-9, 50, 1e9, None, np.zeros(2))
    counts = (np.zeros(2, np.int64), np.zeros(2, np.int64))
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        _core.follow(arrays, *settings, ends._replace(points=points), ends, *counts)


def test_blocks_without_rows_or_columns():
    empty = fw.ScenarioProgram(
        torch.ones(1, 3) / 3, np.zeros((1, 0)), d=[[[1.0]]], recourse_lower=[[[2.0]]]
    )
    solution = fw.solve_program(empty)
    torch.testing.assert_close(solution.recourse, torch.full((1, 3, 1), 2.0).double())
    nothing = fw.ScenarioProgram([[1.0]], [[0.0]], P=[[[1.0]]])
    assert float(fw.solve_program(nothing).decision) == 0.0
    arrays = as_arrays(nothing)
    found = follow_paths(arrays, 1e-9, 50, np.zeros(1))[0]
    right = found.points._replace(z=np.ones((1, 1)))
    adjoint, _ = solve_adjoints(arrays, found, right, np.ones(1, bool))
    np.testing.assert_allclose(adjoint.z, [[1.0]], rtol=1e-6)
