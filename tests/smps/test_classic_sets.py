"""The classic test sets, where they are: HiGHS's reading of the core, known optima, agreement."""

from __future__ import annotations

import numpy as np
import pytest

import forewise as fw
from tests.shared_data import shared_folder
from tests.smps.files import core_optimum, core_scenario, optimum

NAMES = ("lands3", "pgp2", "retail", "sgsc", "fxm2_16", "stocfor2", "ssn", "20term")
OPTIMA = {"pgp2": 447.3243, "fxm2_16": 18416.759, "stocfor2": -39772.4477}


@pytest.fixture(params=NAMES)
def name(request):
    shared_folder("smps")
    return request.param


def test_core_is_what_highs_reads(name, tmp_path):
    folder = shared_folder("smps") / name
    program = fw.smps.read(folder)
    wanted = core_optimum(folder / f"{name}.cor", tmp_path)
    assert optimum(program, core_scenario(program)) == pytest.approx(wanted, rel=1e-8)


def test_written_and_read_again(name, tmp_path):
    program = fw.smps.read(shared_folder("smps") / name)
    again = fw.smps.read(fw.smps.write(program, tmp_path))
    draws = program.sample(3)
    blocks = [one.program(draws).blocks() for one in (program, again)]
    for block in blocks[0]:
        assert np.array_equal(*(part[block].numpy() for part in blocks)), block


@pytest.mark.parametrize("name", OPTIMA)
def test_known_optima(name):
    program = fw.smps.read(shared_folder("smps") / name)
    assert optimum(program) == pytest.approx(OPTIMA[name], abs=1e-3)


def test_solver_agrees_with_highs(name):
    program = fw.smps.read(shared_folder("smps") / name)
    draws = program.sample(4, random_state=1)
    solution = fw.solve_program(program.program(draws))
    wanted = optimum(program, draws)
    assert solution.status == (fw.Status.OPTIMAL,)
    assert float(solution.objective) == pytest.approx(wanted, rel=1e-8, abs=1e-6)
