"""Scenarios: how many, which, how likely; and the program that they make."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.exceptions import InvalidInputError
from tests.smps.files import read, with_stoch

BLOCKS = """\
 BL ONE SECOND 0.5
 RHS DEM 3 CAP 8
 Y COST 4
 BL ONE SECOND 0.5
 RHS DEM 9
 V BAL -2
 BL TWO 0.25
 X DEM 1
 BL TWO 0.75
 X DEM 0.5"""
SCENARIOS = """\
 SC A 'ROOT' 0.5 SECOND
 RHS DEM 3
 SC B ROOT 0.25 SECOND
 RHS DEM 9 COST -1
 SC C B 0.25 SECOND
 Y COST 7"""


def listed(scenarios: fw.Scenarios) -> list[tuple[float, ...]]:
    """(weight, outcomes...) of every scenario."""
    both = torch.cat([scenarios.weights[0, :, None], scenarios.values[0]], dim=1)
    return [tuple(row) for row in both.tolist()]


def test_blocks_inherit_from_the_first_realisation(tmp_path):
    program = read(tmp_path, stoch=with_stoch(BLOCKS, "BLOCKS DISCRETE"))
    names = [str(element) for element in program.elements]
    assert names == [
        "right-hand side DEM",
        "right-hand side CAP",
        "cost Y",
        "entry BAL of V",
        "entry DEM of X",
    ]
    # The first realisation of V in BAL is the core's, -1.
    assert listed(program.scenarios()) == [
        (0.125, 3, 8, 4, -1, 1),
        (0.375, 3, 8, 4, -1, 0.5),
        (0.125, 9, 8, 4, -2, 1),
        (0.375, 9, 8, 4, -2, 0.5),
    ]


def test_scenarios_inherit_from_their_parent(tmp_path):
    program = read(tmp_path, stoch=with_stoch(SCENARIOS, "SCENARIOS DISCRETE"))
    # DEM, the offset of the cost, the cost of Y
    assert listed(program.scenarios()) == [(0.5, 3, -10, 5), (0.25, 9, -1, 5), (0.25, 9, -1, 7)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (SCENARIOS.replace("SC B", "SC A"), "scenario 'A' is here for the second"),
        (SCENARIOS.replace("SC C B", "SC C D"), "earlier scenario, but found 'D'"),
        (SCENARIOS.replace(" SC A 'ROOT' 0.5 SECOND\n", ""), "expected a line SC"),
        (SCENARIOS.replace("DEM 3", "DEM 3 DEM 4"), "right-hand side DEM is here for the second"),
    ],
)
def test_wrong_scenarios(lines, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path, stoch=with_stoch(lines, "SCENARIOS DISCRETE"))


def test_an_element_belongs_to_one_group(tmp_path):
    text = with_stoch(BLOCKS, "INDEP DISCRETE\n RHS DEM 3 1\nBLOCKS DISCRETE")
    with pytest.raises(InvalidInputError, match="right-hand side DEM is in two independent"):
        read(tmp_path, stoch=text)


@pytest.mark.parametrize(("word", "wanted"), [("ADD", [6, 3]), ("MULTIPLY", [5, -10])])
def test_values_on_top_of_the_core(word, wanted, tmp_path):
    lines = " RHS DEM 1 0.5\n RHS DEM -2 0.5"
    program = read(tmp_path, stoch=with_stoch(lines, f"INDEP DISCRETE {word}"))
    assert program.scenarios().values.flatten().tolist() == wanted


# mean, variance
DENSITIES = {
    "UNIFORM": ("2 8", 5, 3),
    "NORMAL": ("6 4", 6, 4),
    "GAMMA": ("2 3", 6, 12),
    "BETA": ("2 2", 0.5, 0.05),
    "UNIFORM ADD": ("-1 1", 5, 1 / 3),
    "NORMAL MULTIPLY": ("2 0.04", 10, 1),
}


@pytest.mark.parametrize("family", DENSITIES)
def test_densities_are_sampled(family, tmp_path):
    parameters, mean, variance = DENSITIES[family]
    lines = f" RHS DEM {parameters.replace(' ', ' SECOND ')}"
    program = read(tmp_path, stoch=with_stoch(lines, f"INDEP {family}"))
    assert program.n_scenarios == math.inf
    draws = program.sample(40_000, random_state=3).values.flatten().numpy()
    assert draws.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / 40_000))
    assert draws.var() == pytest.approx(variance, rel=0.06)
    with pytest.raises(InvalidInputError, match="too many scenarios to list: draw some"):
        program.scenarios(all=True)


@pytest.mark.parametrize(
    ("family", "parameters", "message"),
    [
        ("UNIFORM", "3 2", "the ends of the interval, but found 3, 2"),
        ("NORMAL", "3 -2", "mean and variance, but found 3, -2"),
        ("GAMMA", "0 1", "two positive numbers, scale and shape"),
        ("BETA ADD", "1 1", "ADD is read for DISCRETE, UNIFORM and NORMAL only"),
        ("NORMAL", "3 2\n RHS DEM 4 5", "right-hand side DEM has a distribution already"),
    ],
)
def test_wrong_densities(family, parameters, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path, stoch=with_stoch(f" RHS DEM {parameters}", f"INDEP {family}"))


def test_the_number_of_scenarios_is_exact(tmp_path):
    lines = "\n".join(f" Y ROW{i} {v} 0.2" for i in range(100) for v in range(5))
    rows = "".join(f" L ROW{i}\n" for i in range(100))
    core = f"NAME\nROWS\n N COST\n{rows}COLUMNS\n X COST 1\n Y COST 1\nENDATA\n"
    time = "TIME\nPERIODS\n X COST A\n Y COST B\nENDATA\n"
    program = read(tmp_path, core=core, time=time, stoch=with_stoch(lines))
    assert program.n_scenarios == 5**100
    assert "7.89e+69 scenarios" in repr(program)
    for every in (False, True):
        with pytest.raises(InvalidInputError, match="too many scenarios to list"):
            program.scenarios(all=every)


def test_draws_follow_the_seed_and_the_probabilities(tmp_path):
    program = read(tmp_path)
    first, second = program.sample(4000, random_state=1), program.sample(4000, random_state=1)
    assert torch.equal(first.values, second.values)
    assert not torch.equal(first.values, program.sample(4000, random_state=2).values)
    share = (first.values == 6).double().mean()
    assert float(share) == pytest.approx(0.5, abs=0.04)
    with pytest.raises(InvalidInputError, match="n_scenarios"):
        program.sample(0)


def test_what_is_not_random_is_shared(tmp_path):
    program = read(tmp_path)
    blocks = program.program(program.sample(50)).blocks()
    random = {name for name, block in blocks.items() if block.shape[1:2] == (50,)}
    assert random == {"weights", "r"}
    entries = read(tmp_path, stoch=with_stoch(BLOCKS, "BLOCKS DISCRETE"))
    blocks = entries.program(entries.scenarios()).blocks()
    shapes = {name: tuple(block.shape[:2]) for name, block in blocks.items()}
    # BAL has no random side and DEM none in W; CAP is random and leaves nothing to G.
    assert [name for name in "dTWrFVs" if shapes[name] == (1, 4)] == ["d", "T", "r", "V"]
    assert blocks["G"].shape == (1, 0, 1)


def test_scenarios_of_another_program(tmp_path):
    with pytest.raises(InvalidInputError, match="1 outcomes, one for each random element"):
        read(tmp_path).program(fw.Scenarios(np.zeros((1, 2, 3))))


def test_contexts_weights_and_gradients(tmp_path):
    """Several contexts at once; a gradient with respect to the random elements' values."""
    program = read(tmp_path, stoch=with_stoch(BLOCKS, "BLOCKS DISCRETE"))
    listed = program.scenarios()
    values = torch.cat([listed.values, listed.values + 0.25]).requires_grad_()
    weights = torch.cat([listed.weights, torch.full((1, 4), 0.25, dtype=torch.float64)])

    def cost(values: torch.Tensor) -> torch.Tensor:
        solution = fw.solve_program(program.program(fw.Scenarios(values, weights)))
        return solution.objective

    both = cost(values)
    for i in range(2):
        alone = fw.solve_program(program.program(fw.Scenarios(values[i : i + 1], weights[i])))
        assert alone.objective.item() == pytest.approx(both[i].item(), rel=1e-7)
    (slope,) = torch.autograd.grad(both.sum(), values)
    direction = torch.from_numpy(np.random.default_rng(0).normal(size=values.shape))
    step = 1e-5
    with torch.no_grad():
        ends = [cost(values + sign * step * direction).sum() for sign in (1, -1)]
    assert float((slope * direction).sum()) == pytest.approx(
        float(ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-6
    )
