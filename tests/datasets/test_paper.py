"""The paper's experiments: problems, splits, and figures that are known of them."""

from __future__ import annotations

import numpy as np
import pytest

import forewise as fw
from forewise.datasets import (
    nv1,
    nv2,
    nv_problem,
    nvqp,
    nvqp_problem,
    paper_split,
    pop,
    pop2_problem,
    pop_problem,
)

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


def test_newsvendor_problem_is_the_tenth_quantile():
    assert nv_problem().level.tolist() == pytest.approx([0.1])


def test_portfolio_problem_takes_means_above_a_hundredth():
    problem = pop_problem([[0.2, -1.0], [0.4, 0.5]], minimum_return=5.0)
    assert problem.expected_return.tolist() == pytest.approx([0.3, 0.01])
    assert float(problem.minimum_return) == 5.0
    assert float(pop_problem([[0.2]]).minimum_return) == 10000.0


def test_index_problem_splits_a_hundred():
    problem = pop2_problem()
    decision = fw.solve(problem, fw.Scenarios(-np.ones((1, 3, 5))), fw.ReferenceSolver()).decision
    assert float(decision.sum()) == pytest.approx(100.0)


def test_budget_of_the_quadratic_newsvendor():
    assert float(nvqp_problem().budget) == 14400.0
    assert float(nvqp_problem(budget=6000.0).budget) == 6000.0


def oracle_regret(problem, dataset, n_scenarios):
    """Mean regret, and decisions, of who knows the true distribution through some draws."""
    decision = fw.solve(problem, dataset.true_scenarios(n_scenarios)).decision
    hindsight = fw.solve(problem, fw.Scenarios(dataset.y[:, None])).decision
    costs = problem.cost(decision, dataset.y) - problem.cost(hindsight, dataset.y)
    return float(costs.mean()), decision


def test_regret_of_the_newsvendor_oracle():
    """In the paper's tables R − FR, the oracle's regret, is 427 for NV1 and 361 for NV2."""
    for generate, expected in ((nv1, 427.0), (nv2, 361.0)):
        dataset = generate(6000, 200)
        draws = dataset.true_scenarios(400).values.numpy()
        regret = nv_problem().cost(np.quantile(draws, 0.1, axis=1), dataset.y).mean()
        assert float(regret) == pytest.approx(expected, rel=0.06)


def test_regret_of_the_quadratic_newsvendor_oracle():
    """With 32 true draws it is known to be 10410, 10504, 10494 on three data sets of this size."""
    problem = nvqp_problem()
    found = [oracle_regret(problem, nvqp(2000, seed), 32) for seed in (200, 201, 202)]
    assert np.mean([regret for regret, _ in found]) == pytest.approx(10469.0, rel=0.02)
    spent = np.concatenate([(decision @ problem.price).numpy() for _, decision in found])
    assert 0.02 < (spent > 14400.0 - 1e-6).mean() < 0.07


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
        (lambda: paper_split("nv1", -1), "seed must be a whole number of at least 0, but is -1"),
        (lambda: paper_split("nv1", None), "seed must be a whole number .* but is None"),
        (lambda: paper_split("nv1", n_assets=3), "n_assets must be left out for nv1"),
        (lambda: paper_split("pop", n_assets=0), "n_assets must be a whole number .* but is 0"),
        (lambda: paper_split("nvqp", n_train=0), "n_train must be a whole number .* but is 0"),
        (lambda: pop_problem([0.1, 0.2]), r"y_train must have shape .* but has shape \(2,\)"),
        (lambda: pop_problem([[np.nan]]), "y_train must be finite"),
        (lambda: pop_problem([[0.1]], [1.0, 2.0]), "minimum_return must be one number"),
        (lambda: nvqp_problem(np.nan), "budget must be finite"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        make()
