"""The nearest feasible decision, at any scale."""

from __future__ import annotations

import pytest
import torch

import forewise as fw
from forewise.solvers.projection import project

BUDGETED = fw.QuadraticNewsvendor(1.0, [0.0, 0.0], 1.0, 1.0, 1.0, 1.0, [1.0, 2.0], 4.0)


def tensor(*rows):
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 30.0, 1e4, 1e9])
def test_orthant_at_any_scale(size):
    """All rows pass through the origin: only the point itself says how long lengths are."""
    wanted = size * tensor([-3.0], [-1e-3], [1e-6], [0.5], [10.0])
    found = project(fw.Newsvendor(1.0, 9.0), wanted, 1)
    assert all(status is fw.Status.OPTIMAL for status in found.status)
    assert torch.allclose(found.decision, wanted.clamp_min(0), atol=1e-10 * size, rtol=1e-7)


def test_steep_costs_are_not_mistaken_for_unbounded_ones():
    """The cost falls a long way, and then rises: no ray, whatever the ratio."""
    eye = torch.eye(1, dtype=torch.float64)[None]
    for slope in (1e2, 1e4, 1e6, 1e8):
        program = fw.ScenarioProgram(
            weights=torch.ones(1, 1), q=-slope * tensor([1.0]), P=eye, G=-eye, h=tensor([0.0])
        )
        found = fw.solve_program(program)
        assert found.decision.item() == pytest.approx(slope, rel=1e-7)


def test_gradient_is_that_of_the_projection():
    wanted = tensor([1.0, 1.0], [5.0, 5.0], [-1.0, 0.5]).requires_grad_()
    decision = project(BUDGETED, wanted, 2).decision
    # Inside; on the budget, where (1, 2) is the normal; on the first bound.
    distance = (5.0 + 2 * 5.0 - 4.0) / 5.0
    expected = tensor([1.0, 1.0], [5.0 - distance, 5.0 - 2 * distance], [0.0, 0.5])
    expected[1] = tensor([0.0, 2.0]) if (expected[1] < 0).any() else expected[1]
    assert torch.allclose(decision.detach(), expected, atol=1e-6)
    decision.sum().backward()
    assert torch.allclose(wanted.grad[0], tensor(1.0, 1.0), atol=1e-5)
    assert torch.allclose(wanted.grad[2], tensor(0.0, 1.0), atol=1e-5)
