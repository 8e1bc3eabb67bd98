"""The paper's problems, and figures that are known of them."""

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
    pop_problem,
)


def test_newsvendor_problem_is_the_tenth_quantile():
    assert nv_problem().level.tolist() == pytest.approx([0.1])


def test_portfolio_problem_takes_means_above_a_hundredth():
    problem = pop_problem([[0.2, -1.0], [0.4, 0.5]], minimum_return=5.0)
    assert problem.expected_return.tolist() == pytest.approx([0.3, 0.01])
    assert float(problem.minimum_return) == 5.0
    assert float(pop_problem([[0.2]]).minimum_return) == 10000.0


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pop_problem([0.1, 0.2]), r"y_train must have shape .* but has shape \(2,\)"),
        (lambda: pop_problem([[np.nan]]), "y_train must be finite"),
        (lambda: pop_problem([[0.1]], [1.0, 2.0]), "minimum_return must be one number"),
        (lambda: nvqp_problem(np.nan), "budget must be finite"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        make()
