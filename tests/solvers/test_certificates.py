"""Infeasible and unbounded programs: none missed, none invented, every proof checked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw
from tests.solvers.programs import (
    Shape,
    infeasible_program,
    planted_program,
    random_shape,
    unbounded_program,
)

BATCH = 10


@pytest.mark.parametrize("seed", range(5))
def test_planted_infeasible_programs(seed):
    rng = np.random.default_rng([1, seed])
    torch.manual_seed(seed)
    for _ in range(10):
        program = infeasible_program(rng, random_shape(rng, BATCH))
        solution = fw.solve_program(program, on_failure="return")
        assert set(solution.status) == {fw.Status.INFEASIBLE}
        for i in range(BATCH):
            assert_proves_infeasible(program.take(torch.tensor([i])), solution.certificates[i])


def assert_proves_infeasible(program, certificate):
    """λ ≥ 0, A'λ + E'ν = 0 and b'λ + e'ν = −1, written out block by block."""
    proof = certificate.multipliers
    assert (proof.inequality >= 0).all()
    assert (proof.scenario_inequality >= 0).all()
    T = torch.nn.functional.pad(program.T, (0, 0, 0, program.r.shape[-1] - program.T.shape[-2]))
    in_z = torch.einsum("bgn,bg->bn", program.G, proof.inequality)
    in_z = in_z + torch.einsum("ben,be->bn", program.E, proof.equality)
    in_z = in_z + torch.einsum("bmrn,bmr->bn", T, proof.scenario_inequality)
    in_z = in_z + torch.einsum("bmsn,bms->bn", program.F, proof.scenario_equality)
    in_u = torch.einsum("bmrk,bmr->bmk", program.W, proof.scenario_inequality)
    in_u = in_u + torch.einsum("bmsk,bms->bmk", program.V, proof.scenario_equality)
    value = (program.h * proof.inequality).sum() + (program.e * proof.equality).sum()
    value = value + (program.r * proof.scenario_inequality).sum()
    value = value + (program.s * proof.scenario_equality).sum()
    assert float(value) == pytest.approx(-1.0)
    assert float(in_z.abs().max()) <= 1e-5
    assert in_u.numel() == 0 or float(in_u.abs().max()) <= 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_planted_unbounded_programs(seed):
    rng = np.random.default_rng([2, seed])
    torch.manual_seed(seed)
    for _ in range(10):
        program = unbounded_program(rng, random_shape(rng, BATCH))
        solution = fw.solve_program(program, on_failure="return")
        assert set(solution.status) == {fw.Status.UNBOUNDED}
        for i in range(BATCH):
            assert_proves_unbounded(program.take(torch.tensor([i])), solution.certificates[i])


def assert_proves_unbounded(program, certificate):
    """A x ≤ 0, E x = 0, H x = 0 and cost −1, written out block by block."""
    z, u = certificate.decision_ray, certificate.recourse_ray
    T = torch.nn.functional.pad(program.T, (0, 0, 0, program.r.shape[-1] - program.T.shape[-2]))
    rows = torch.einsum("bmrn,bn->bmr", T, z) + torch.einsum("bmrk,bmk->bmr", program.W, u)
    equal = torch.einsum("bmsn,bn->bms", program.F, z) + torch.einsum("bmsk,bmk->bms", program.V, u)
    parts = [
        torch.einsum("bgn,bn->bg", program.G, z).clamp_min(0),
        rows.clamp_min(0),
        torch.einsum("ben,bn->be", program.E, z),
        equal,
        torch.einsum("bij,bj->bi", program.P, z),
        torch.einsum("bmij,bmj->bmi", program.D, u),
    ]
    for part in parts:
        assert part.numel() == 0 or float(part.abs().max()) <= 1e-4
    cost = (program.q * z).sum() + (program.weights.unsqueeze(-1) * program.d * u).sum()
    assert float(cost) == pytest.approx(-1.0)


def bad_blocks(kind: str, program: fw.ScenarioProgram) -> dict[str, torch.Tensor]:
    """Blocks of one context that make it fail in a given way."""
    n = program.n_decisions
    row = torch.zeros(1, program.G.shape[1], n, dtype=torch.float64)
    if kind == "infeasible":
        row[0, 0, 0], row[0, 1, 0] = 1.0, -1.0
        h = torch.zeros(1, program.h.shape[1], dtype=torch.float64)
        h[0, 0], h[0, 1] = 1.0, -2.0
        return {"G": row, "h": h}
    if kind == "unbounded":
        zeros = {name: torch.zeros_like(getattr(program, name)) for name in "PDTWEFV"}
        return {
            **zeros,
            "G": row,
            "e": torch.zeros(1, 1),
            "s": torch.zeros(1, program.n_scenarios, 1),
        }
    if kind == "nan":
        r = program.r.clone()
        r[0, 0, 0] = torch.nan
        return {"r": r}
    if kind == "infinite":
        q = program.q.clone()
        q[0, 0] = torch.inf
        return {"q": q}
    P = program.P.clone()
    P[0, 0, 0] = -5.0
    return {"P": P}


@pytest.mark.parametrize("position", [0, 100, 255])
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("infeasible", fw.Status.INFEASIBLE),
        ("unbounded", fw.Status.UNBOUNDED),
        ("nan", fw.Status.INVALID),
        ("infinite", fw.Status.INVALID),
        ("nonconvex", fw.Status.NONCONVEX),
    ],
)
def test_one_bad_context_changes_no_bit_of_its_neighbours(kind, status, position):
    rng = np.random.default_rng(8)
    shape = Shape(B=256, M=3, n=3, k=2, g=3, e=1, t=2, r=3, s=1)
    good = planted_program(rng, shape).program
    bad = bad_blocks(kind, good.take(torch.tensor([position])))

    def with_bad(name: str, block: torch.Tensor) -> torch.Tensor:
        block = block.clone()
        if name in bad:
            block[position] = bad[name][0]
        return block

    def solve(program: fw.ScenarioProgram):
        program = program.map(lambda _, b: b.clone().requires_grad_())
        solution = fw.solve_program(program, on_failure="return")
        decision = solution.decision
        decision[~decision.isnan().any(1)].square().sum().backward()
        return solution, {name: block.grad for name, block in program.blocks().items()}

    others = torch.tensor([i for i in range(256) if i != position])
    solution, gradients = solve(good.map(with_bad))
    alone, alone_gradients = solve(good.take(others))
    assert solution.status[position] is status
    assert solution.decision[position].isnan().all()
    assert {solution.status[i] for i in others.tolist()} == {fw.Status.OPTIMAL}
    assert torch.equal(solution.decision[others], alone.decision)
    assert torch.equal(solution.recourse[others], alone.recourse)
    for name, gradient in gradients.items():
        if gradient is not None and gradient.numel():
            assert torch.equal(gradient[others], alone_gradients[name]), name
            assert not gradient[position].any(), name


def test_failures_raise_by_default_and_keep_the_rest():
    rng = np.random.default_rng(9)
    torch.manual_seed(0)
    program = infeasible_program(rng, Shape(B=7, M=2, n=2, k=0, g=1, e=0, t=0, r=0, s=0))
    with pytest.raises(
        fw.SolveError, match=r"7 of 7 contexts .* context 0 is infeasible .* 2 more"
    ) as caught:
        fw.solve_program(program)
    assert caught.value.solution.status[0] is fw.Status.INFEASIBLE


@pytest.mark.parametrize(("n_scenarios", "searched"), [(100, True), (100_000, False)])
def test_a_large_program_that_stalls_is_inaccurate_without_a_search(n_scenarios, searched):
    scenarios = fw.Scenarios(np.random.default_rng(0).lognormal(size=(1, n_scenarios, 1)))
    program = fw.Newsvendor(shortage=3, excess=1).program(scenarios)
    starts = []

    def count(reported):
        starts.extend([reported] if reported.iteration == 0 else [])

    solver = fw.InteriorPointSolver(max_iterations=1, log=count)
    solution = fw.solve_program(program, solver, on_failure="return")
    assert solution.status == (fw.Status.INACCURATE,)
    assert (len(starts) > 1) == searched
