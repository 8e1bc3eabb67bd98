"""What is written reads as what it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw
from tests.smps.files import CORE, optimum, read, with_stoch
from tests.smps.test_distribution import BLOCKS, SCENARIOS
from tests.smps.test_reading import ELEMENTS, FEATURES

STOCHS = {
    **{name: with_stoch(lines) for name, (lines, _) in ELEMENTS.items()},
    "blocks": with_stoch(BLOCKS, "BLOCKS DISCRETE"),
    "scenarios": with_stoch(SCENARIOS, "SCENARIOS DISCRETE"),
    "both": with_stoch(" Y DEM 0.1 0.3\n Y DEM 1 0.7\nBLOCKS\n" + BLOCKS),
    "densities": with_stoch(
        " RHS DEM 3 7\nINDEP NORMAL\n Y COST 5 0.1\nINDEP GAMMA\n X DEM 1 2", "INDEP UNIFORM"
    ),
}


def same(first: fw.smps.TwoStageProgram, second: fw.smps.TwoStageProgram) -> None:
    """Both programs have the same names, elements, draws and blocks."""
    assert (first.core.rows, first.core.columns) == (second.core.rows, second.core.columns)
    assert first.elements == second.elements
    assert first.row_names == second.row_names
    assert first.n_scenarios == second.n_scenarios
    draws = [program.sample(20, random_state=5) for program in (first, second)]
    assert torch.equal(draws[0].values, draws[1].values)
    blocks = [program.program(draws[0]).blocks() for program in (first, second)]
    for name, block in blocks[0].items():
        assert torch.equal(block, blocks[1][name]), name


@pytest.mark.parametrize("name", STOCHS)
def test_distributions_round_trip(name, tmp_path):
    program = read(tmp_path, stoch=STOCHS[name])
    folder = fw.smps.write(program, tmp_path / "new" / "folder")
    same(program, fw.smps.read(folder))


@pytest.mark.parametrize("feature", FEATURES)
def test_cores_round_trip(feature, tmp_path):
    program = read(tmp_path, core=CORE.replace("ENDATA", FEATURES[feature] + "\nENDATA"))
    same(program, fw.smps.read(fw.smps.write(program, tmp_path / "out")))


def test_all_digits_and_awkward_names(tmp_path):
    core = CORE.replace("CAP 1", f"CAP {1 / 3!r}").replace(" X ", " RHS ").replace("BAL", "*B[1,2]")
    time = "TIME t\nPERIODS\n RHS CAP ONE\n Y DEM TWO\nENDATA\n"
    stoch = with_stoch(f" R DEM {np.pi!r} 0.5\n R DEM 4 0.5")
    program = read(tmp_path, core=core, time=time, stoch=stoch)
    again = fw.smps.read(fw.smps.write(program, tmp_path / "out"))
    same(program, again)
    assert again.core.rhs_set == "RHS_"
    assert optimum(again) == optimum(program)


def test_writing_twice_replaces(tmp_path):
    program = read(tmp_path)
    for _ in range(2):
        fw.smps.write(program, tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 3
