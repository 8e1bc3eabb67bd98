"""Gradients against central finite differences, and what they must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import forewise as fw
from forewise.problems.bounds import with_bounds_as_rows
from forewise.problems.programs import BLOCKS
from forewise.solvers.extensive import extensive_form
from forewise.solvers.interior_point.core import PathEnds, as_arrays, follow_paths, units
from tests.solvers.programs import Planted, Shape, planted_program

STEP = 1e-6
KINDS = ("dense", "separable", "mixed")


def well_posed(rng: np.random.Generator, *, linear: bool, recourse: str) -> fw.ScenarioProgram:
    """One context whose solution moves smoothly: few active rows, strict complementarity."""
    n, k = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    r = int(rng.integers(1, k + 2))
    shape = Shape(
        B=1,
        M=int(rng.integers(1, 4)),
        n=n,
        k=k,
        g=int(rng.integers(1, 4)),
        e=int(rng.integers(0, 2)) if n > 2 else 0,
        t=int(rng.integers(1, min(r, k) + 1)),
        r=r,
        s=0 if recourse == "separable" or k < 3 else int(rng.integers(0, 2)),
    )
    while True:
        planted = planted_program(rng, shape, linear=linear, recourse=recourse)
        solution = fw.solve_program(planted.program)
        if linear and _has_interior(_boxed(planted)) and _steady_units(_boxed(planted)):
            return _boxed(planted)
        if not linear and _regular(planted.program, solution):
            return planted.program


def _boxed(planted: Planted) -> fw.ScenarioProgram:
    """The program with a box around its optimum, so that its central path is bounded."""
    program, z, u = planted.program, planted.z, planted.u
    eye, eye_u = torch.eye(z.shape[1]).double(), torch.eye(u.shape[2]).double()
    box, box_u = (
        torch.cat([eye, -eye])[None],
        torch.cat([eye_u, -eye_u]).expand(1, u.shape[1], -1, -1),
    )
    blocks = program.blocks()
    blocks["G"] = torch.cat([program.G, box], dim=1)
    blocks["h"] = torch.cat([program.h, 2 + z, 2 - z], dim=1)
    blocks["W"] = torch.cat([program.W, box_u], dim=2)
    blocks["r"] = torch.cat([program.r, 2 + u, 2 - u], dim=2)
    return fw.ScenarioProgram(**blocks)


def _has_interior(program: fw.ScenarioProgram) -> bool:
    """Whether there is a point with some slack in every row: without one there is no path."""
    form = extensive_form(program, 0)
    A, b = form.A.toarray(), form.b
    n = A.shape[1]
    most = linprog(
        np.r_[np.zeros(n), -1.0],
        A_ub=np.c_[A, np.ones(len(b))],
        b_ub=b,
        A_eq=np.c_[form.E.toarray(), np.zeros(len(form.e))] if len(form.e) else None,
        b_eq=form.e if len(form.e) else None,
        bounds=[(None, None)] * n + [(None, 1.0)],
    )
    return float(most.x[-1]) > 1e-3


def _steady_units(program: fw.ScenarioProgram) -> bool:
    """Whether no small change carries a scale to the next power of two, and so moves the centre."""
    if float(max(program.q.abs().max(), program.d.abs().max())) < 0.1:
        return False  # without costs, any cost is a new scale
    found = set()
    for factor in (0.99, 1.0, 1.01):
        for names in ("qd", "hers"):
            changed = program.map(lambda n, b, f=factor, w=names: b * f if n in w else b)
            arrays = as_arrays(changed)
            found.add(tuple(units(arrays)[0]))
    return len(found) == 1


def _regular(program: fw.ScenarioProgram, solution: fw.Solution) -> bool:
    """Whether the active rows and equalities are well away from being dependent."""
    n, k, M = program.n_decisions, program.n_recourse, program.n_scenarios
    T = torch.nn.functional.pad(program.T, (0, 0, 0, program.r.shape[-1] - program.T.shape[-2]))
    active = [torch.nn.functional.pad(rows, (0, M * k)) for rows in (
        program.G[0, solution.duals.inequality[0] > 1e-6], program.E[0],
    )]  # fmt: skip
    for j in range(M):
        on = solution.duals.scenario_inequality[0, j] > 1e-6
        in_z = torch.cat([T[0, j, on], program.F[0, j]])
        in_u = torch.cat([program.W[0, j, on], program.V[0, j]])
        before, after = j * k, (M - 1 - j) * k
        active.append(torch.cat([in_z, torch.nn.functional.pad(in_u, (before, after))], dim=1))
    rows = torch.cat(active)
    if rows.shape[0] == 0:
        return True
    return rows.shape[0] <= n + M * k and float(torch.linalg.svdvals(rows).min()) > 0.3


def centres(program: fw.ScenarioProgram, gap: float) -> PathEnds:
    """The points of the central path at a relative gap, which no solver returns."""
    arrays = as_arrays(with_bounds_as_rows(program))
    return follow_paths(arrays, 1e-9, 100, np.full(program.n_contexts, gap))[1]


def finite_difference(program, name, value) -> torch.Tensor:
    """Central differences of `value(program)` in every entry of one block, all in one batch."""
    block = getattr(program, name)
    n = block.numel()
    moves = torch.eye(n, dtype=block.dtype).reshape(n, *block.shape[1:])
    if name in "PD":
        moves = 0.5 * (moves + moves.mT)  # only symmetric changes keep these blocks valid
    both = torch.cat([block + STEP * moves, block - STEP * moves])
    batch = program.map(
        lambda other, b: both if other == name else b.expand(2 * n, *b.shape[1:]).clone()
    )
    values = value(batch)
    return ((values[:n] - values[n:]) / (2 * STEP)).reshape(block.shape)


def worst_error(program, solver, value, values_of_batch, skip="c") -> float:
    """Largest relative difference between autograd and finite differences over the blocks."""
    leaves = program.map(lambda _, b: b.clone().requires_grad_())
    value(solver.solve_program(leaves)).backward()
    worst = 0.0
    for name in ("weights", *BLOCKS):
        block = getattr(leaves, name)
        if block.numel() == 0 or name in skip:
            continue
        gradient = torch.zeros_like(block) if block.grad is None else block.grad
        true = finite_difference(program, name, values_of_batch)
        scale = max(1.0, float(true.abs().max()))
        worst = max(worst, float((gradient - true).abs().max()) / scale)
    return worst


@pytest.mark.parametrize("recourse", KINDS)
def test_quadratic_programs_in_every_input(recourse, capsys):
    """Decision, recourse and multipliers all carry gradients to every block."""
    rng = np.random.default_rng(10)
    solver = fw.InteriorPointSolver(tolerance=1e-11)  # differences see the last digits
    worst = 0.0
    for _ in range(100):
        program = well_posed(rng, linear=False, recourse=recourse)
        sizes = (program.n_decisions, program.n_recourse, program.h.shape[-1], program.r.shape[-1])
        a, b, c, d = (torch.tensor(rng.normal(size=size)) for size in sizes)

        def value(solution, a=a, b=b, c=c, d=d):
            total = (solution.decision * a).sum(-1) + (solution.recourse * b).sum((-1, -2))
            total = total + (solution.duals.inequality * c).sum(-1)
            return total + (solution.duals.scenario_inequality * d).sum((-1, -2))

        error = worst_error(
            program,
            solver,
            lambda solution: value(solution).sum(),
            lambda batch: value(fw.solve_program(batch, solver)),
        )
        worst = max(worst, error)
    with capsys.disabled():
        print(f" worst relative error {worst:.1e}", end="")
    assert worst <= 1e-5


def test_linear_programs_at_their_point_of_the_central_path(capsys):
    """A linear program's gradient is that of its centre at the smoothing's distance."""
    rng = np.random.default_rng(12)
    worst = 0.0
    for smoothing in (1e-1, 1e-2):
        solver = fw.InteriorPointSolver(smoothing=smoothing)

        def centre(batch, smoothing=smoothing):
            return torch.from_numpy(centres(batch, smoothing).points.z)

        for _ in range(50):
            program = well_posed(rng, linear=True, recourse=str(rng.choice(KINDS)))
            a = torch.tensor(rng.normal(size=program.n_decisions))
            error = worst_error(
                program,
                solver,
                lambda solution, a=a: (solution.decision * a).sum(),
                lambda batch, a=a, centre=centre: (centre(batch) * a).sum(-1),
                skip="cPD",  # half of a central difference in these is not convex
            )
            worst = max(worst, error)
    with capsys.disabled():
        print(f" worst relative error {worst:.1e}", end="")
    assert worst <= 1e-5


def test_gradcheck_of_a_full_newsvendor_through_scenarios_and_weights():
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    problem = fw.QuadraticNewsvendor(
        quadratic=[[2.0, 0.5, 0.1], [0.5, 1.5, 0.2], [0.1, 0.2, 1.0]],
        linear=1.0, shortage_quadratic=3.0, shortage=[8.0, 9.0, 7.0], excess_quadratic=1.0,
        excess=2.0, price=1.0, budget=4.0,
    )  # fmt: skip
    values = (3 + values).requires_grad_()
    weights = torch.rand(2, 5, generator=generator, dtype=torch.float64).requires_grad_()

    def decide(values, weights):
        return fw.solve(problem, fw.Scenarios(values, weights), fw.InteriorPointSolver()).decision

    assert torch.autograd.gradcheck(decide, (values, weights), eps=1e-6, atol=1e-6)


def test_shared_data_get_the_sum_over_contexts():
    rng = np.random.default_rng(13)
    program = planted_program(rng, Shape(B=1, M=3, n=3, k=2, g=2, e=1, t=2, r=3, s=1)).program
    batch = program.map(lambda n, b: b.expand(4, *b.shape[1:]).clone() if n in "qd" else b)
    weights = program.weights.expand(4, -1).contiguous()
    q = (batch.q + torch.tensor(rng.normal(size=batch.q.shape)) * 0.1).requires_grad_()
    names = list("PGhEeTWrFVsD")
    shared = {name: getattr(program, name).clone().requires_grad_() for name in names}
    together = fw.solve_program(fw.ScenarioProgram(weights=weights, q=q, d=batch.d, **shared))
    together.decision.square().sum().backward()
    looped = {name: getattr(program, name).clone().requires_grad_() for name in names}
    for i in range(4):
        alone = fw.ScenarioProgram(
            weights=weights[i : i + 1], q=q.detach()[i : i + 1], d=batch.d[i : i + 1], **looped
        )
        fw.solve_program(alone).decision.square().sum().backward()
    for name in names:
        true = looped[name].grad
        assert torch.allclose(shared[name].grad, true, rtol=1e-12, atol=1e-12), name


def test_closed_forms_have_the_gradients_of_the_interior_point():
    """Quadratic newsvendor: scenarios, weights, and every cost, price and budget."""
    generator = torch.Generator().manual_seed(3)
    demand = 10 + 4 * torch.randn(6, 9, 3, generator=generator, dtype=torch.float64)
    weights = 0.2 + torch.rand(6, 9, generator=generator, dtype=torch.float64)
    data = {
        "quadratic": [2.0, 1.0, 3.0], "linear": [1.0, 2.0, 0.5],
        "shortage_quadratic": [4.0, 3.0, 5.0], "shortage": [20.0, 25.0, 30.0],
        "excess_quadratic": [1.0, 2.0, 1.5], "excess": [3.0, 2.0, 4.0],
        "price": [1.0, 2.0, 1.5], "budget": 30.0,
    }  # fmt: skip
    gradients = []
    for solver in (fw.solvers.DualSearchSolver(), fw.InteriorPointSolver()):
        leaves = {k: torch.tensor(v, dtype=torch.float64).requires_grad_() for k, v in data.items()}
        y, w = demand.clone().requires_grad_(), weights.clone().requires_grad_()
        solution = fw.solve(fw.QuadraticNewsvendor(**leaves), fw.Scenarios(y, w), solver)
        loss = solution.decision.square().sum() + solution.objective.sum()
        (loss + solution.duals.inequality[:, -1].sum()).backward()
        gradients.append([y.grad, w.grad, *(leaf.grad for leaf in leaves.values())])
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_the_quantile_moves_with_the_scenario_it_is():
    values = torch.tensor([[[1.0], [4.0], [2.0], [3.0]]], dtype=torch.float64).requires_grad_()
    fw.solve(fw.Newsvendor(1.0, 1.0), fw.Scenarios(values)).decision.sum().backward()
    assert values.grad.flatten().tolist() == [0.0, 0.0, 1.0, 0.0]


def test_the_centre_of_many_decisions_moves_with_the_outcomes():
    """A battery that covers every outcome leaves the schedule a range, and its middle is taken.

    It costs (y − z − u)² to be off, and |u| ≤ 1 is free: with outcomes less than 2 apart every z
    from max y − 1 to min y + 1 is optimal. Two outcomes pull equally; all of them moved together
    take z along.
    """

    def middle(y: torch.Tensor) -> torch.Tensor:
        B, M = y.shape
        off = torch.tensor([[1.0, 1.0]])  # u and v, with v = y − z − u
        program = fw.ScenarioProgram(
            weights=torch.full((B, M), 1 / M).double(),
            q=torch.zeros(1, 1).double(),
            D=torch.tensor([[0.0, 0.0], [0.0, 2.0]]).double()[None, None],
            W=torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double()[None, None],
            r=torch.ones(1, 1, 2).double(),
            F=torch.ones(1, 1, 1, 1).double(),
            V=off.double()[None, None],
            s=y[..., None],
        )
        return fw.solve_program(program).decision[:, 0]

    y = torch.tensor([[3.0, 4.0], [5.0, 5.5]]).double().requires_grad_()
    z = middle(y)
    assert torch.allclose(z, y.mean(1), atol=1e-6)
    z.sum().backward()
    assert torch.allclose(y.grad, torch.full_like(y, 0.5), atol=1e-5)

    # The middle has Σ log(1 − u²) as large as it can be, with u = y − z.
    y = torch.tensor([[3.0, 3.2, 4.1, 3.7]]).double().requires_grad_()
    z = middle(y)
    z.sum().backward()
    left, right = 3.1, 4.0
    for _ in range(60):
        true = (left + right) / 2
        u = y.detach()[0] - true
        left, right = (true, right) if (u / (1 - u**2)).sum() > 0 else (left, true)
    assert float(z.detach()) == pytest.approx(true, abs=0.02)
    pull = (1 + u**2) / (1 - u**2) ** 2
    assert torch.allclose(y.grad[0], pull / pull.sum(), atol=1e-4)


def at_least(program):
    """A portfolio's program that lets it return more than is asked for."""
    return replace(
        program,
        G=torch.cat([program.G, -program.E], 1),
        h=torch.cat([program.h, -program.e], 1),
        E=None,
        e=None,
    )


def test_gradients_where_decisions_as_large_as_one_likes_are_optimal():
    """A portfolio that cannot lose may be any number of times as large: there is no centre.

    The gradient is that of a point not far from the decision, and does not depend on the units.
    """
    rng = np.random.default_rng(4)
    values = torch.tensor(1.0 + 0.2 * rng.normal(size=(3, 8, 4)))
    gradients = []
    for unit in (1.0, 1024.0):
        problem = fw.Portfolio([0.9, 1.0, 1.1, 1.2], 10.0 * unit)
        leaf = values.clone().requires_grad_()
        solution = fw.InteriorPointSolver().solve_program(
            at_least(problem.program(fw.Scenarios(leaf)))
        )
        assert float(solution.objective.detach().abs().max()) <= 1e-6 * unit
        (solution.decision / unit).square().sum().backward()
        gradients.append(leaf.grad)
        program = at_least(problem.program(fw.Scenarios(values)))
        found = centres(program, 1e-3)
        assert (found.holds > 0).all()
        assert np.abs(found.points.z[:, :4]).max() <= 100 * unit
    assert torch.allclose(*gradients, rtol=1e-6)
    assert 0 < float(gradients[0].abs().max()) < 1e4
