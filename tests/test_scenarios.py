"""Scenarios: what they accept, and what they say when they don't."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw


def test_equal_weights_by_default():
    scenarios = fw.Scenarios(np.zeros((2, 4, 3)))
    assert (scenarios.n_contexts, scenarios.n_scenarios, scenarios.n_outcomes) == (2, 4, 3)
    assert torch.equal(scenarios.weights, torch.full((2, 4), 0.25, dtype=torch.float64))


def test_weights_are_normalised_and_keep_their_gradient():
    weights = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    scenarios = fw.Scenarios(np.zeros((2, 2, 1)), weights)
    assert scenarios.weights.tolist() == [[0.25, 0.75], [0.25, 0.75]]
    scenarios.weights[0, 0].backward()
    assert weights.grad is not None


def test_some_contexts_of_a_batch():
    scenarios = fw.Scenarios(np.arange(12.0).reshape(3, 2, 2), [[1, 3], [1, 1], [3, 1]])
    part = scenarios[1:]
    assert part.values.shape == (2, 2, 2)
    assert part.weights.tolist() == [[0.5, 0.5], [0.75, 0.25]]


@pytest.mark.parametrize(
    ("values", "weights", "message"),
    [
        (np.zeros((2, 3)), None, r"values must have shape .* but has shape \(2, 3\)"),
        (np.zeros((0, 3, 1)), None, "values must have shape .* all at least 1"),
        (np.zeros((2, 0, 1)), None, "values must have shape .* all at least 1"),
        ([["a"]], None, "values must be numbers"),
        (np.zeros((1, 2, 1)) + 1j, None, "values must be"),
        (np.zeros((2, 3, 1)), np.ones((2, 2)), r"weights must have shape .*\(2, 3\).*\(2, 2\)"),
        (np.zeros((1, 2, 1)), [1.0, -1.0], "weights must be at least 0.*-1"),
        (np.zeros((1, 2, 1)), [0.0, 0.0], "weights must not all be zero"),
        (np.zeros((2, 2, 1)), [[0.0, 0.0], [1.0, 0.0]], r"weights must not .* 1 context"),
        (np.zeros((1, 2, 1)), [1.0, np.nan], "weights must be finite"),
        (np.zeros((1, 2, 1)), [1.0, np.inf], "weights must be finite"),
    ],
)
def test_bad_input_is_named(values, weights, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        fw.Scenarios(values, weights)


def test_nan_values_are_a_status_of_their_context():
    values = np.ones((3, 2, 1))
    values[1, 0, 0] = np.nan
    with pytest.raises(fw.SolveError, match=r"context 1 is invalid .*NaN or infinity"):
        fw.solve(fw.Newsvendor(1.0, 1.0), fw.Scenarios(values))
