"""The interior point against planted optima, trusted solvers, and itself one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.solvers.interior_point.core import as_arrays, structure
from tests.solvers.programs import Shape, planted_program, random_shape, residuals

BATCH = 10
CUT_SHORT = Shape(B=8, M=5, n=4, k=3, g=4, e=0, t=3, r=4, s=0)


def relative(found: torch.Tensor, true: torch.Tensor) -> float:
    errors = (found - true).abs() / true.abs().clamp_min(1)
    return float(errors.max()) if errors.numel() else 0.0


def kinds():
    for linear in (False, True):
        for degenerate in (False, True):
            for recourse in ("dense", "separable", "mixed"):
                name = "LP" if linear else "QP"
                name += ("-degenerate" if degenerate else "") + f"-{recourse}"
                yield pytest.param(linear, degenerate, recourse, id=name)


@pytest.mark.parametrize(("linear", "degenerate", "recourse"), list(kinds()))
def test_planted_optima_are_found(linear, degenerate, recourse):
    """1,560 programs over all kinds: right objective, feasible, and none given up."""
    assert count_given_up([linear, degenerate], 13, linear, degenerate, recourse) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("linear", "degenerate", "recourse"), list(kinds()))
def test_planted_optima_are_found_on_seeds_nobody_tuned_on(linear, degenerate, recourse):
    """12,000 more programs, none of which is given up."""
    assert count_given_up([2026, linear, degenerate], 100, linear, degenerate, recourse) == 0


def count_given_up(seed, n_batches, linear, degenerate, recourse) -> int:
    """How many contexts are inaccurate; all others must be right, and none proven impossible."""
    rng = np.random.default_rng([*seed, ["dense", "separable", "mixed"].index(recourse)])
    given_up = 0
    for _ in range(n_batches):
        shape = random_shape(rng, BATCH)
        planted = planted_program(
            rng, shape, linear=linear, degenerate=degenerate, recourse=recourse
        )
        solution = fw.solve_program(planted.program, on_failure="return")
        found = solution.optimal
        given_up += BATCH - int(found.sum())
        assert relative(solution.objective[found], planted.objective[found]) <= 1e-7, shape
        check = residuals(planted.program, solution)
        assert float(check.worst[found].max()) <= 1e-8, shape
        assert not solution.certificates, shape
    return given_up


@pytest.mark.parametrize("linear", [False, True])
def test_agrees_with_the_reference_solver(linear):
    rng = np.random.default_rng(7 + linear)
    for _ in range(20):
        program = planted_program(rng, random_shape(rng, 5), linear=linear).program
        ours = fw.solve_program(program)
        theirs = fw.solve_program(program, fw.ReferenceSolver())
        assert relative(ours.objective, theirs.objective) <= 1e-7
        if not linear:
            assert relative(ours.decision, theirs.decision) <= 1e-5


def test_strictly_convex_decisions_equal_the_planted_ones():
    rng = np.random.default_rng(3)
    for _ in range(30):
        planted = planted_program(rng, random_shape(rng, BATCH))
        solution = fw.solve_program(planted.program)
        assert relative(solution.decision, planted.z) <= 1e-7
        assert relative(solution.recourse, planted.u) <= 1e-6


@pytest.mark.parametrize("recourse", ["dense", "separable", "mixed"])
def test_batched_equals_one_by_one_to_the_last_bit(recourse):
    rng = np.random.default_rng(11)
    shape = Shape(B=6, M=5, n=4, k=3, g=3, e=1, t=3, r=4, s=0 if recourse == "separable" else 1)
    program = planted_program(rng, shape, recourse=recourse).program
    together = fw.solve_program(program)
    for i in range(6):
        alone = fw.solve_program(program.take(torch.tensor([i])))
        assert torch.equal(alone.decision[0], together.decision[i])
        assert torch.equal(alone.recourse[0], together.recourse[i])


def test_rows_that_repeat_each_other_count_each():
    """Their weights are added in the elimination; limits of both signs are rows of that kind."""
    rng = np.random.default_rng(8)
    B, M, n, k = 4, 6, 5, 3
    rows = rng.normal(size=(3, n + k))
    both = np.concatenate([rows, -rows, rows])  # the last ones are tighter or looser copies
    program = fw.ScenarioProgram(
        weights=np.full((B, M), 1 / M),
        q=rng.normal(size=(B, n)),
        P=np.eye(n)[None],
        D=0.1 * np.eye(k)[None, None],
        d=rng.normal(size=(B, M, k)),
        T=both[None, None, :, :n],
        W=both[None, None, :, n:],
        r=rng.uniform(0.1, 1.0, size=(B, M, 9)),
    )
    leads = structure(as_arrays(program)).leads
    assert leads.tolist() == [0, 1, 2] * 3
    ours, theirs = fw.solve_program(program), fw.solve_program(program, fw.ReferenceSolver())
    assert relative(ours.decision, theirs.decision) <= 1e-6
    assert relative(ours.recourse, theirs.recourse) <= 1e-5


def test_what_is_simple_and_what_links():
    """A battery links; what is short or too much, and limits on one variable, are simple."""
    W = np.zeros((7, 4))  # battery, short, too much, another that shares a row with "short"
    W[0, [0, 1]], W[1, [0, 2]] = -1, -1  # z + battery + short ≥ y, and the other way round
    W[2, 1], W[3, 2], W[4, 2] = -1, -1, 1  # bounds
    W[5, 0] = 1  # of the battery
    W[6, [0, 3]] = 1
    blocks = {"T": np.ones((1, 1, 2, 1)), "W": W[None, None], "r": np.ones((1, 1, 7))}
    found = structure(as_arrays(fw.ScenarioProgram([[1.0]], [[0.0]], **blocks)))
    assert found.linking.tolist() == [0]
    assert found.own.tolist() == [1, 2, 1, 2, 2, -1, 3]
    assert found.starts.tolist() == [0, 1, 2, 2, 2, 2, 3, 4]
    curved = {
        "D": np.array([[0, 0, 0, 0], [0, 1, 0.5, 0], [0, 0.5, 1, 0], [0, 0, 0, 0.0]])[None, None]
    }
    found = structure(as_arrays(fw.ScenarioProgram([[1.0]], [[0.0]], **blocks, **curved)))
    assert found.linking.tolist() == [0, 1, 2]
    tied = {
        "V": np.array([[0, 0, 0, 1.0]])[None, None],
        "F": np.zeros((1, 1, 1, 1)),
        "s": [[[0.0]]],
    }
    found = structure(as_arrays(fw.ScenarioProgram([[1.0]], [[0.0]], **blocks, **tied)))
    assert found.linking.tolist() == [0, 3]


def test_threads_do_not_change_the_answer():
    rng = np.random.default_rng(5)
    program = planted_program(rng, Shape(B=9, M=6, n=5, k=3, g=4, e=1, t=3, r=5, s=1)).program
    before = torch.get_num_threads()
    try:
        answers = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            answers.append(fw.solve_program(program).decision)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*answers)


def test_programs_without_inequalities_or_recourse():
    """Least squares with equalities: solved by one linear system, checked by it."""
    rng = np.random.default_rng(2)
    for shape in (
        Shape(B=3, M=2, n=4, k=0, g=0, e=2, t=0, r=0, s=0),
        Shape(B=3, M=2, n=4, k=3, g=0, e=1, t=0, r=0, s=2),
        Shape(B=3, M=2, n=4, k=0, g=0, e=0, t=0, r=0, s=0),
        Shape(B=3, M=2, n=3, k=0, g=2, e=0, t=2, r=2, s=0),
    ):
        planted = planted_program(rng, shape)
        solution = fw.solve_program(planted.program)
        assert relative(solution.decision, planted.z) <= 1e-8


def test_scenarios_of_weight_zero_do_not_exist():
    """They neither cost nor constrain, even if they are impossible to meet."""
    rng = np.random.default_rng(4)
    shape = Shape(B=4, M=6, n=3, k=2, g=2, e=0, t=2, r=3, s=0)
    program = planted_program(rng, shape).program
    weights = program.weights.clone()
    weights[:, 2] = 0
    weights /= weights.sum(1, keepdim=True)
    r = program.r.clone()
    r[:, 2] = -1e6
    blocks = {name: b for name, b in program.blocks().items() if b.numel()}
    with_it = fw.solve_program(fw.ScenarioProgram(**{**blocks, "weights": weights, "r": r}))
    others = [0, 1, 3, 4, 5]
    without = {n: b[:, others] if n in ("weights", *"DdTWr") else b for n, b in blocks.items()}
    without["weights"] = weights[:, others]
    assert torch.allclose(
        with_it.decision, fw.solve_program(fw.ScenarioProgram(**without)).decision, atol=1e-9
    )
    assert torch.equal(with_it.recourse[:, 2], torch.zeros(4, 2, dtype=torch.float64))


def test_an_iteration_limit_is_reported_and_never_called_optimal():
    rng = np.random.default_rng(6)
    program = planted_program(rng, Shape(B=4, M=5, n=4, k=3, g=4, e=0, t=3, r=4, s=0)).program
    solution = fw.solve_program(
        program, fw.InteriorPointSolver(max_iterations=2), on_failure="return"
    )
    assert set(solution.status) == {fw.Status.INACCURATE}
    assert solution.decision.isnan().all()


def test_a_path_that_ends_near_its_solution_is_polished():
    """Five iterations leave seven digits at best; equations of the active rows give all of them."""
    planted = planted_program(np.random.default_rng(6), CUT_SHORT)
    solver = fw.InteriorPointSolver(max_iterations=5)
    solution = fw.solve_program(planted.program, solver, on_failure="return")
    optimal = solution.optimal
    assert int(optimal.sum()) == 7  # of 8: the last one is too far from its solution
    assert relative(solution.decision[optimal], planted.z[optimal]) <= 1e-12
    assert relative(solution.recourse[optimal], planted.u[optimal]) <= 1e-12


def test_a_correction_that_cannot_be_computed_leaves_the_context_inaccurate(monkeypatch):
    """With weights forty orders of magnitude apart, numpy's decomposition may not converge."""
    program = planted_program(np.random.default_rng(6), CUT_SHORT).program
    solver = fw.InteriorPointSolver(max_iterations=7)
    polished = fw.solve_program(program, solver)

    def fails(*arguments, **settings):
        raise np.linalg.LinAlgError("SVD did not converge in Linear Least Squares")

    monkeypatch.setattr(np.linalg, "lstsq", fails)
    found = fw.solve_program(program, solver, on_failure="return")
    assert found.status.count(fw.Status.INACCURATE) == 2
    assert torch.equal(found.decision[found.optimal], polished.decision[found.optimal])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be positive"),
        ({"tolerance": 1e-3}, "tolerance must be positive"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
        ({"smoothing": -1.0}, "smoothing must be at least 0"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        fw.InteriorPointSolver(**settings)
