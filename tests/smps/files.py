"""Small SMPS programs written by hand, and HiGHS's own reading of core files."""

from __future__ import annotations

import shutil
from pathlib import Path

import highspy
import numpy as np

import forewise as fw

CORE = """\
NAME tiny
ROWS
 N COST
 L CAP
 G DEM
 E BAL
COLUMNS
 X COST 2 CAP 1
 X DEM 1
 Y COST 5 DEM 1
 Y BAL 1
 V BAL -1 COST 0.5
RHS
 R COST -10 CAP 8
 R DEM 5
ENDATA
"""
TIME = """\
TIME tiny
PERIODS
 X CAP FIRST
 Y DEM SECOND
ENDATA
"""
STOCH = """\
STOCH tiny
INDEP DISCRETE
 RHS DEM 3 0.25
 RHS DEM 6 SECOND 0.5
 RHS DEM 10 0.25
ENDATA
"""


def put(folder: Path, core: str = CORE, time: str = TIME, stoch: str = STOCH) -> Path:
    """The three files of a program in a folder."""
    for ending, text in {"cor": core, "tim": time, "sto": stoch}.items():
        (folder / f"tiny.{ending}").write_text(text)
    return folder


def read(folder: Path, **files: str) -> fw.smps.TwoStageProgram:
    """The program of the tiny files, some of them replaced."""
    return fw.smps.read(put(folder, **files))


def with_stoch(lines: str, header: str = "INDEP DISCRETE") -> str:
    """A stoch file of one section."""
    return f"STOCH tiny\n{header}\n{lines}\nENDATA\n"


def optimum(program: fw.smps.TwoStageProgram, scenarios: fw.Scenarios | None = None) -> float:
    """The optimal cost of the scenarios, of all by default, by the reference solver."""
    blocks = program.program(program.scenarios() if scenarios is None else scenarios)
    solution = fw.ReferenceSolver().solve_program(blocks)
    assert solution.status == (fw.Status.OPTIMAL,)
    return float(solution.objective)


def core_optimum(path: Path, folder: Path) -> float:
    """The optimal cost of a core file, read and solved by HiGHS."""
    target = folder / "highs.mps"
    shutil.copy(path, target)
    target.chmod(0o600)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(target)) != highspy.HighsStatus.kError
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getObjectiveValue())


def core_scenario(program: fw.smps.TwoStageProgram) -> fw.Scenarios:
    """One scenario in which every random element has the core's own value."""
    core, place = program.core, fw.smps.Place
    row, column = core.rows.index, core.columns.index
    own = {
        place.COST: lambda e: core.cost[column(e.column)],
        place.ENTRY: lambda e: core.matrix[row(e.row), column(e.column)],
        place.RIGHT_SIDE: lambda e: core.rhs[row(e.row)],
        place.OFFSET: lambda e: -core.constant,
        place.LOWER: lambda e: core.lower[column(e.column)],
        place.UPPER: lambda e: core.upper[column(e.column)],
        place.FIXED: lambda e: core.lower[column(e.column)],
    }
    return fw.Scenarios(np.array([[[own[e.place](e) for e in program.elements]]]))
