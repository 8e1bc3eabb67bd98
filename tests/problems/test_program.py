"""The scenario program: sharing, shapes, and what it says of bad blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw

WEIGHTS = np.full((2, 3), 1 / 3)


def program(**blocks):
    return fw.ScenarioProgram(**{"weights": WEIGHTS, "q": np.zeros((1, 4)), **blocks})


def test_absent_blocks_are_empty():
    empty = program()
    assert empty.G.shape == (1, 0, 4)
    assert empty.T.shape == (1, 1, 0, 4)
    assert empty.is_linear


def test_taking_contexts_keeps_what_is_shared():
    part = program(h=np.zeros((2, 1)), G=np.ones((1, 1, 4))).take(torch.tensor([1]))
    assert part.weights.shape == (1, 3)
    assert part.h.shape == (1, 1)
    assert part.G.shape == (1, 1, 4)


def test_the_objective_by_hand():
    both = program(
        P=np.eye(4)[None], q=np.ones((1, 4)), D=np.full((1, 1, 1, 1), 2.0), d=np.ones((1, 1, 1)),
        c=[5.0],
    )  # fmt: skip
    z, u = torch.ones(2, 4).double(), torch.full((2, 3, 1), 2.0).double()
    assert both.objective(z, u).tolist() == [2 + 4 + 4 + 2 + 5] * 2


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"K": [1.0]}, "no block named K; its blocks are q, P"),
        ({"weights": np.ones(3)}, "weights must have shape .n_contexts, n_scenarios."),
        ({"weights": -WEIGHTS}, "weights must be at least 0"),
        ({"weights": WEIGHTS * np.nan}, "weights must be finite"),
        ({"weights": np.zeros((0, 3))}, "both at least 1"),
        ({"P": np.ones((4, 4))}, "P must have 3 dimensions"),
        ({"P": np.ones((1, 3, 3))}, "P has shape .* q says that its dimension 'z' is 4"),
        ({"P": np.triu(np.ones((1, 4, 4)))}, "P must be symmetric"),
        ({"h": np.ones((1, 2))}, "h is given without G"),
        ({"E": np.ones((1, 2, 4))}, "E is given without e"),
        ({"d": np.ones((3, 1, 2))}, "d must start with .* or with 1 where it is shared"),
        (
            {"T": np.ones((1, 1, 2, 4)), "W": np.ones((1, 1, 1, 1)), "r": np.ones((1, 1, 1))},
            "T has 2 rows, but W and r only 1",
        ),
    ],
)
def test_bad_blocks_are_named(blocks, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        program(**blocks)
