"""Sparse blocks and bounds: the solutions of dense programs with rows, and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import forewise as fw
from forewise.exceptions import InvalidInputError

STEP = 1e-5
WANTED = ("q", "d", "e", "r", "T", "W", "lower", "upper", "recourse_lower", "recourse_upper")


def random_block(rng, rows, columns, lead, density=0.3) -> fw.SparseBlock:
    """Standard normal entries in random places, at least one in each row."""
    mask = rng.random((rows, columns)) < density
    mask[np.arange(rows), rng.integers(0, columns, rows)] = True
    where = np.nonzero(mask)
    return fw.SparseBlock(*where, rng.standard_normal((*lead, len(where[0]))), (rows, columns))


def random_program(seed: int, B: int = 1) -> fw.ScenarioProgram:
    """A strictly convex program with sparse blocks and bounds that a planted point keeps."""
    rng = np.random.default_rng(seed)
    n, k, M = (int(rng.integers(low, high)) for low, high in ((4, 9), (4, 9), (2, 5)))
    e, t, s = 1, int(rng.integers(1, 4)), int(rng.integers(0, 2))
    r = t + int(rng.integers(0, 3))
    z, u = rng.standard_normal((B, n)), rng.standard_normal((B, M, k))
    lead = (1, 1) if seed % 2 else (B, M)
    blocks = {
        "T": random_block(rng, t, n, lead), "W": random_block(rng, r, k, lead),
        "F": random_block(rng, s, n, (1, 1)), "V": random_block(rng, s, k, (1, 1)),
        "E": random_block(rng, e, n, (1,)),
    }  # fmt: skip
    T, W, F, V, E = (block.dense().numpy() for block in blocks.values())
    rows = np.einsum("bmrk,bmk->bmr", np.broadcast_to(W, (B, M, r, k)), u)
    rows[..., :t] += np.einsum("bmtn,bn->bmt", np.broadcast_to(T, (B, M, t, n)), z)
    equal = np.einsum("xyrk,bmk->bmr", V, u) + np.einsum("xyrn,bn->br", F, z)[:, None]

    def side(point: np.ndarray, sign: float) -> np.ndarray:
        bound = point + sign * rng.choice([0.2, 0.5, 2.0], point.shape)
        there = rng.random(point.shape[-1]) < 0.6  # in all contexts and scenarios, or in none
        return np.where(there, bound, sign * np.inf)

    bent = sp.diags(rng.uniform(0.5, 2.0, k)).tocsr()
    return fw.ScenarioProgram(
        np.full((B, M), 1.0 / M),
        3 * rng.standard_normal((B, n)),
        d=3 * rng.standard_normal((B, M, k)),
        P=sp.diags(rng.uniform(0.5, 2.0, n)).tocsr(),
        D=bent,
        e=np.einsum("xrn,bn->br", E, z),
        r=rows + rng.choice([0.2, 1.0], rows.shape),
        s=equal,
        lower=side(z, -1.0),
        upper=side(z, 1.0),
        recourse_lower=side(u, -1.0),
        recourse_upper=side(u, 1.0),
        **blocks,
    )


def with_rows(program: fw.ScenarioProgram) -> fw.ScenarioProgram:
    """The same program, dense, its bounds as rows; where there is none, a row far away."""
    n, k = program.n_decisions, program.n_recourse
    eye, eye_u = torch.eye(n).double(), torch.eye(k).double()

    def near(bound: torch.Tensor) -> torch.Tensor:
        return bound.clamp(-1e3, 1e3)

    blocks = {name: b for name, b in program.blocks().items() if name not in program.bounds}
    blocks["G"] = torch.cat([blocks["G"], torch.cat([eye, -eye])[None]], 1)
    h = blocks["h"].expand(program.n_contexts, -1)
    blocks["h"] = torch.cat([h, near(program.upper), -near(program.lower)], 1)
    both = torch.cat([eye_u, -eye_u]).expand(*blocks["W"].shape[:2], -1, -1)
    blocks["W"] = torch.cat([blocks["W"], both], 2)
    bounds = [near(program.recourse_upper), -near(program.recourse_lower)]
    blocks["r"] = torch.cat([blocks["r"], *bounds], 2)
    return fw.ScenarioProgram(**blocks)


@pytest.mark.parametrize("seed", range(12))
def test_sparse_programs_with_bounds_have_the_solution_of_dense_ones(seed):
    program = random_program(seed, B=3)
    solution, other = fw.solve_program(program), fw.solve_program(with_rows(program))
    torch.testing.assert_close(solution.decision, other.decision, rtol=0, atol=1e-6)
    torch.testing.assert_close(solution.recourse, other.recourse, rtol=0, atol=1e-6)
    torch.testing.assert_close(solution.objective, other.objective, rtol=1e-8, atol=1e-8)
    n = program.n_decisions
    multipliers = torch.cat([solution.duals.upper, solution.duals.lower], 1)
    expected = other.duals.inequality[:, -2 * n :]
    torch.testing.assert_close(multipliers, expected, rtol=0, atol=1e-6)
    reference = fw.solve_program(program, fw.ReferenceSolver())
    torch.testing.assert_close(solution.objective, reference.objective, rtol=1e-8, atol=1e-8)


def test_fixed_variables_and_bounds_of_some_contexts():
    lower = torch.tensor([[1.0, -torch.inf], [1.0, 0.5]]).double()
    program = fw.ScenarioProgram(
        torch.ones(2, 1), [[1.0, 0.0]], P=np.eye(2)[None], lower=lower, upper=[[1.0, torch.inf]]
    )
    solution = fw.solve_program(program)
    expected = torch.tensor([[1.0, 0.0], [1.0, 0.5]]).double()
    torch.testing.assert_close(solution.decision, expected, rtol=0, atol=1e-8)
    # Stationarity: z + q − λ_lower + λ_upper = 0.
    slope = program.q + solution.decision - solution.duals.lower + solution.duals.upper
    torch.testing.assert_close(slope, torch.zeros(2, 2).double(), rtol=0, atol=1e-8)


def test_crossed_bounds_are_infeasible_with_a_proof_of_them():
    program = fw.ScenarioProgram(torch.ones(1, 1), [[1.0]], lower=[[1.0]], upper=[[0.0]])
    solution = fw.solve_program(program, on_failure="return")
    assert solution.status == (fw.Status.INFEASIBLE,)
    proof = solution.certificates[0].multipliers
    assert float(proof.lower) == pytest.approx(1.0)
    assert float(proof.upper) == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_every_sparse_format_is_the_same_block():
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]])
    blocks = {
        "scipy": sp.csc_matrix(dense),
        "coo": torch.tensor(dense).to_sparse(),
        "batched": torch.tensor(dense)[None, None].to_sparse(),
        "csr": torch.tensor(dense).to_sparse_csr(),
        "own": fw.SparseBlock([1, 0, 1], [2, 1, 0], [[[-3.0, 2.0, 1.0]]], (2, 3)),
    }
    for name, block in blocks.items():
        program = fw.ScenarioProgram([[1.0]], [[1.0, 1.0, 1.0]], T=block, r=[[[1.0, 1.0]]])
        np.testing.assert_array_equal(program.T[0, 0].numpy(), dense, err_msg=name)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.longdouble])
def test_hostile_sparse_matrices_have_the_dense_solution(dtype):
    """Duplicates, empty rows, unsorted columns, stored zeros, other types and layouts."""
    dense = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [1, 0, -3, 1]]).astype(dtype)
    twice = sp.coo_matrix(
        (np.array([1, 1, 1, -3, 1, 0], dtype), ([0, 0, 2, 2, 2, 1], [1, 1, 0, 2, 3, 3])), (3, 4)
    )
    unsorted = sp.csr_matrix(
        (np.array([2, 1, -3, 1], dtype), np.array([1, 3, 2, 0]), np.array([0, 1, 1, 4])), (3, 4)
    )
    formats = ("csr", "csc", "coo", "lil", "dok", "dia")
    blocks = [twice, unsorted, *(sp.coo_matrix(dense).asformat(name) for name in formats)]
    if dtype is not np.longdouble:
        value = torch.from_numpy(dense)
        blocks += [value.to_sparse(), value.to_sparse_csr(), value[None].to_sparse()]
    solver = fw.InteriorPointSolver()
    blocks_of = {"P": np.eye(4)[None], "h": [[-1.0, 0.5, -2.0]]}
    wanted = None
    for block in blocks:  # one pattern after the other, by one solver
        program = fw.ScenarioProgram([[1.0]], [[1.0, -1.0, 0.5, 2.0]], G=block, **blocks_of)
        decision = fw.solve_program(program, solver).decision
        wanted = decision if wanted is None else wanted
        torch.testing.assert_close(decision, wanted, rtol=0, atol=1e-9)
    other = fw.ScenarioProgram([[1.0]], [[1.0, -1.0, 0.5, 2.0]], G=dense[None] * 1.0, **blocks_of)
    torch.testing.assert_close(fw.solve_program(other).decision, wanted, rtol=0, atol=1e-7)
    assert twice.nnz == 6  # what was passed is as it was


def test_sparse_blocks_that_cannot_be():
    with pytest.raises(InvalidInputError, match="outside"):
        fw.SparseBlock([0], [3], [[1.0]], (1, 3))
    with pytest.raises(InvalidInputError, match="two entries in one place"):
        fw.SparseBlock([0, 0], [1, 1], [[1.0, 2.0]], (1, 3))
    with pytest.raises(InvalidInputError, match="as many rows"):
        fw.SparseBlock([0, 0], [1], [[1.0, 2.0]], (1, 3))
    for wrong in ([0.7], [True]):
        with pytest.raises(InvalidInputError, match="must be integers, but came as"):
            fw.SparseBlock(wrong, [1], [[1.0]], (1, 3))
    with pytest.raises(InvalidInputError, match="size must be"):
        fw.SparseBlock([0], [1], [[1.0]], (1.5, 3))
    for matrix in (sp.csr_matrix([[1j, 0.0]]), sp.coo_array([1.0, 0.0])):
        with pytest.raises(InvalidInputError, match="T must be a matrix of real numbers"):
            fw.ScenarioProgram([[1.0]], [[0.0, 0.0]], T=matrix, r=[[[1.0]]])
    for batch in (torch.eye(2).expand(3, 1, 2, 2), torch.eye(2).expand(1, 3, 2, 2)):
        with pytest.raises(InvalidInputError, match="T must start with"):
            fw.ScenarioProgram([[1.0]], [[0.0, 0.0]], T=batch.to_sparse(), r=[[[1.0, 1.0]]])
    with pytest.raises(InvalidInputError, match="T has shape"):
        fw.ScenarioProgram([[1.0]], [[0.0]], T=sp.eye(2).tocsr(), r=[[[1.0, 1.0]]])
    with pytest.raises(InvalidInputError, match="P must be symmetric"):
        fw.ScenarioProgram([[1.0]], [[0.0, 0.0]], P=sp.csr_matrix([[1.0, 1.0], [0.0, 1.0]]))
    with pytest.raises(InvalidInputError, match="upper must have shape"):
        fw.ScenarioProgram([[1.0]], [[0.0, 0.0]], upper=[[1.0]])
    with pytest.raises(InvalidInputError, match="lower is inf"):
        fw.ScenarioProgram([[1.0]], [[0.0]], lower=[[np.inf]])


def entries(program: fw.ScenarioProgram, name: str) -> torch.Tensor:
    """What a gradient may be asked of: a dense block, a bound, or the entries of a sparse one."""
    block = getattr(program, name) if name in program.bounds else program.block(name)
    return block.entries if isinstance(block, fw.SparseBlock) else block


def worst_gradient_error(seed: int) -> float:
    """Largest error of autograd against central differences, relative to the largest derivative.

    Where active rows are dependent the two one-sided differences differ, and no gradient exists.
    """
    program = random_program(seed)
    solver = fw.InteriorPointSolver()
    rng = np.random.default_rng(seed)
    of_z = torch.tensor(rng.standard_normal(program.n_decisions))
    of_u = torch.tensor(rng.standard_normal((program.n_scenarios, program.n_recourse)))

    def value(p: fw.ScenarioProgram) -> torch.Tensor:
        found = solver.solve_program(p)
        assert bool(found.optimal.all())
        return (found.decision @ of_z) + (found.recourse * of_u).sum((1, 2)) + found.objective

    leaves = program.map(lambda _, block: block.clone().requires_grad_())
    here = value(leaves)
    here.sum().backward()
    worst = 0.0
    for name in WANTED:
        block = entries(program, name)
        places = block.isfinite().flatten().nonzero().flatten()
        if not len(places):
            continue
        moves = torch.zeros(len(places), block.numel()).double()
        moves[torch.arange(len(places)), places] = STEP
        moves = moves.reshape(-1, *block.shape[1:])
        both = torch.cat([block + moves, block - moves])
        batch = program.map(
            lambda other, b, n=name, v=both: v if other == n else b.expand(len(v), *b.shape[1:])
        )
        up, down = value(batch).chunk(2)
        expected = (up - down) / (2 * STEP)
        smooth = (up + down - 2 * here.detach()).abs() < 1e-2 * STEP
        found = entries(leaves, name).grad.flatten()[places]
        off = torch.where(smooth, (found - expected).abs(), 0.0)
        error = off.max() / expected.abs().max().clamp_min(1.0)
        worst = max(worst, float(error))
    return worst


def is_well_posed(seed: int) -> bool:
    """Whether no row or bound of the solution is about to become, or to cease to be, active."""
    program = random_program(seed)
    found = fw.solve_program(program, on_failure="return")
    if not bool(found.optimal.all()):
        return False
    z, u, duals = found.decision, found.recourse, found.duals
    rows = program.block("W").times(u)
    rows[..., : program.block("T").size[0]] += program.block("T").times(z.unsqueeze(1))
    pairs = [
        (program.r - rows, duals.scenario_inequality),
        (program.upper - z, duals.upper), (z - program.lower, duals.lower),
        (program.recourse_upper - u, duals.recourse_upper * program.n_scenarios),
        (u - program.recourse_lower, duals.recourse_lower * program.n_scenarios),
    ]  # fmt: skip
    return all(bool((torch.maximum(slack, dual) > 1e-2).all()) for slack, dual in pairs)


@pytest.mark.parametrize("seed", range(6))
def test_gradients_of_sparse_programs(seed):
    assert is_well_posed(seed)
    assert worst_gradient_error(seed) <= 1e-5


@pytest.mark.slow
def test_gradients_of_many_sparse_programs():
    errors = {}
    for seed in range(100, 2000):
        if is_well_posed(seed):
            errors[seed] = worst_gradient_error(seed)
        if len(errors) == 200:
            break
    assert len(errors) == 200
    assert {seed: error for seed, error in errors.items() if error > 1e-5} == {}
