"""The paper's runs: sizes, seeds, and the problem of POP2."""

from __future__ import annotations

import numpy as np
import pytest

import forewise as fw
from forewise.datasets import nv1, pop, pop_problem
from forewise_lab.datasets.paper import paper_split, pop2_problem

SIZES = {
    "nv1": (1800, 1200, 1200),
    "nv2": (1800, 1200, 1200),
    "nvqp": (4000, 2000, 2000),
    "pop": (1500, 900, 1500),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_seeds(name):
    run = paper_split(name, 3)
    parts = (run.train, run.validation, run.test)
    assert tuple(part.n_contexts for part in parts) == SIZES[name]
    # Three independent data sets: no context is in two of them.
    contexts = [part.X[part.X != 0] for part in parts]
    assert not np.isin(contexts[0], np.concatenate(contexts[1:])).any()
    assert not np.isin(contexts[1], contexts[2]).any()


def test_seeds_are_those_of_the_paper():
    run = paper_split("nv1", 3)
    assert np.array_equal(run.validation.y, nv1(1200, 103).y)
    assert np.array_equal(run.test.y, nv1(1200, 203).y)
    run = paper_split("pop", 3, n_train=40, n_assets=10)
    assert np.array_equal(run.train.y, pop(40, 10, 3).y)
    assert np.array_equal(run.validation.y, pop(900, 10, 83).y)
    assert np.array_equal(run.test.y, pop(1500, 10, 163).y)


def test_index_problem_splits_a_hundred():
    problem = pop2_problem()
    decision = fw.solve(problem, fw.Scenarios(-np.ones((1, 3, 5))), fw.ReferenceSolver()).decision
    assert float(decision.sum()) == pytest.approx(100.0)


def test_cost_of_the_smallest_portfolio():
    """The portfolio of least norm is known to lose 2014 to 2138, whatever the context."""
    losses = []
    for seed in range(4):
        run = paper_split("pop", seed)
        problem = pop_problem(run.train.y)
        p = problem.expected_return.numpy()
        decision = np.tile(10000.0 * p / (p @ p), (run.test.n_contexts, 1))
        losses.append(float(problem.cost(decision, run.test.y).mean()))
    assert np.mean(losses) == pytest.approx(2100.0, rel=0.06)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: paper_split("nv3"), r"name must be one of \['nv1', .*\], but is 'nv3'"),
        (lambda: paper_split("pop2"), r"but is 'pop2'; for POP2 use pop2_paper\(\)"),
        (lambda: paper_split("nv1", -1), "seed must be .* but is -1"),
        (lambda: paper_split("nv1", None), "seed must be .* but is None"),
        (lambda: paper_split("nv1", n_assets=3), "n_assets must be left out for nv1"),
        (lambda: paper_split("pop", n_assets=0), "n_assets must be .* but is 0"),
        (lambda: paper_split("nvqp", n_train=0), "n_train must be .* but is 0"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        make()
