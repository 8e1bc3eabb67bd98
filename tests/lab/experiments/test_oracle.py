"""The oracle has converged: twice as many true scenarios change its cost by next to nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.datasets import nvqp_problem, pop_problem
from forewise_lab.datasets.paper import paper_split

_CONTEXTS, _JUDGED = 200, 20_000


def expected_cost(problem, rows, scenarios):
    """Mean cost of the scenarios' decisions, over draws of the truth that they have not seen."""
    decision = fw.solve(problem, scenarios).decision
    truth = rows.true_scenarios(_JUDGED, np.random.default_rng(1)).values
    costs = [
        problem.cost(one.expand(_JUDGED, -1), outcomes).mean()
        for one, outcomes in zip(decision, truth, strict=True)
    ]
    return torch.stack(costs).mean().item()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "draws"), [("nvqp", 1000), ("pop", 8000)])
def test_doubling_the_draws_changes_the_cost_by_less_than_a_tenth_of_a_percent(name, draws):
    split = paper_split(name, 0)
    problem = pop_problem(split.train.y) if name == "pop" else nvqp_problem()
    rows = split.test[:_CONTEXTS]
    twice = rows.true_scenarios(2 * draws, np.random.default_rng(0))
    once = fw.Scenarios(twice.values[:, :draws])
    change = expected_cost(problem, rows, twice) / expected_cost(problem, rows, once) - 1
    assert abs(change) < 1e-3
