"""The instances are what their titles say, and lifting them changes nothing."""

import numpy as np
import pytest
import torch

from forewise.problems import ScenarioProgram
from forewise.problems.bounds import with_bounds_as_rows
from forewise.solvers.extensive import extensive_form
from forewise_lab.bench.accuracy import true_cost
from forewise_lab.bench.instances import FAMILIES, NEWSVENDOR_BUDGET, nvqp, pop, recourse
from forewise_lab.bench.peers.base import lift
from forewise_lab.bench.peers.solvers import ClarabelLoop


def test_budget_binds_in_about_half_of_the_contexts():
    instance = nvqp(n_scenarios=16)
    decision = ClarabelLoop().prepare(instance).forward().decision
    spent = decision @ instance.problem.price.numpy()
    binding = (spent > NEWSVENDOR_BUDGET - 1e-3).mean()
    assert 0.35 <= binding <= 0.65


def test_portfolio_always_loses_something():
    instance = pop(n_scenarios=64, n_contexts=16)
    answer = ClarabelLoop().prepare(instance).forward()
    assert true_cost(instance, answer).min() > 0.01


def test_doing_nothing_is_strictly_feasible_in_the_recourse_instance():
    program = recourse(n_scenarios=4, n_contexts=2).program
    assert (program.r > 0).all()
    assert program.G.shape[1] == program.E.shape[1] == program.V.shape[2] == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_same_seed_same_instance_and_no_global_state(family):
    before = torch.random.get_rng_state()
    first, second = (FAMILIES[family](3, 2) for _ in range(2))
    other = FAMILIES[family](3, 2, seed=1)
    assert torch.equal(first.direction(), second.direction())
    for name, leaf in first.leaves().items():
        assert torch.equal(leaf, second.leaves()[name])
        assert not torch.equal(leaf, other.leaves()[name])
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("family", FAMILIES)
def test_program_of_the_leaves_is_the_program(family):
    instance = FAMILIES[family](3, 2)
    again = with_bounds_as_rows(instance.program_of(instance.leaves()))
    for name in ("q", "d", "T", "W", "r", "weights"):
        assert torch.equal(getattr(again, name), getattr(instance.program, name))
    assert any(getattr(again, name).requires_grad for name in ("T", "r"))


def program_with_everything() -> ScenarioProgram:
    """Equalities in both stages, unequal weights, rows that the decision does not touch."""
    generator = np.random.default_rng(7)
    lead = (3, 4)
    weights = generator.uniform(0.5, 1.5, size=lead)
    return ScenarioProgram(
        weights=weights / weights.sum(-1, keepdims=True),
        P=np.eye(2)[None],
        q=generator.normal(size=(3, 2)),
        G=generator.normal(size=(1, 2, 2)),
        h=np.ones((3, 2)),
        E=np.ones((1, 1, 2)),
        e=np.ones((1, 1)),
        D=np.eye(3)[None, None],
        d=generator.normal(size=(*lead, 3)),
        T=generator.normal(size=(*lead, 1, 2)),
        W=generator.normal(size=(1, 1, 3, 3)),
        r=np.ones((1, 4, 3)),
        F=generator.normal(size=(1, 4, 2, 2)),
        V=generator.normal(size=(3, 4, 2, 3)),
        s=generator.normal(size=(*lead, 2)),
    )


PROGRAMS = {
    **{family: FAMILIES[family](3, 2).program for family in FAMILIES},
    "everything": program_with_everything(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_lifted_program_is_the_extensive_form_of_every_context(name):
    program = PROGRAMS[name]
    lifted = lift(program)
    A = lifted.A.dense().expand(program.n_contexts, -1, -1).numpy()
    P = lifted.P.dense().expand(program.n_contexts, -1, -1).numpy()
    for context in range(program.n_contexts):
        form = extensive_form(program, context)
        assert lifted.n_equalities == len(form.e)
        np.testing.assert_array_equal(A[context], np.vstack([form.E.toarray(), form.A.toarray()]))
        np.testing.assert_array_equal(P[context], form.P.toarray())
        np.testing.assert_array_equal(lifted.q[context], form.q)
        np.testing.assert_array_equal(lifted.b[context], np.concatenate([form.e, form.b]))


def test_lifted_rows_are_in_csr_order():
    A = lift(program_with_everything()).A
    offsets = A.row_offsets
    assert offsets[-1] == len(A.columns)
    for row in range(A.shape[0]):
        columns = A.columns[offsets[row] : offsets[row + 1]]
        assert (np.diff(columns) > 0).all()
        assert (A.rows[offsets[row] : offsets[row + 1]] == row).all()
