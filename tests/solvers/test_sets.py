"""Programs of public test sets, read from files: verdicts and optima that were once wrong."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch

import forewise as fw
from tests.shared_data import shared_folder

#: Called infeasible at one time, with a proof; optima by Clarabel and HiGHS.
FEASIBLE = {
    "QBORE3D": 3.10020080e3,
    "QFORPLAN": 7.45663146e9,
    "QSCSD1": 8.66666667,
    "QSHARE1B": 7.20078318e5,
    "share1b": -7.65893186e4,
}
_NONE = 1e20  # a bound as large as this is none


def first_stage_program(path: Path) -> fw.ScenarioProgram:
    """min ½x'Px + c'x, Ax = b, h_l ≤ Gx ≤ h_u, x_l ≤ x ≤ x_u, as a program without recourse."""
    stored = scipy.io.loadmat(path)

    def dense(name: str) -> np.ndarray:
        block = stored[name]
        return np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)

    n = len(dense("P"))
    rows, bounds = [], []
    for matrix, low, high in [("G", "h_l", "h_u"), (None, "x_l", "x_u")]:
        block = np.eye(n) if matrix is None else dense(matrix).reshape(-1, n)
        for sign, bound in ((1, dense(high).ravel()), (-1, -dense(low).ravel())):
            kept = bound < _NONE
            rows.append(sign * block[kept])
            bounds.append(bound[kept])
    blocks = {
        "q": dense("c").ravel(), "P": dense("P"), "G": np.vstack(rows),
        "h": np.concatenate(bounds), "E": dense("A").reshape(-1, n), "e": dense("b").ravel(),
    }  # fmt: skip
    return fw.ScenarioProgram(
        torch.ones(1, 1).double(), **{k: torch.tensor(v)[None] for k, v in blocks.items()}
    )


@pytest.mark.parametrize("solver", [None, fw.InteriorPointSolver(), fw.ReferenceSolver()])
@pytest.mark.parametrize("name", FEASIBLE)
def test_feasible_programs_have_their_optimum(name, solver):
    program = first_stage_program(shared_folder("qp") / f"{name}.mat")
    solution = fw.solve_program(program, solver)
    assert float(solution.objective) == pytest.approx(FEASIBLE[name], rel=1e-7)


def sections(path: Path) -> dict[str, list[list[str]]]:
    """The lines of an MPS-like file by section, split into words."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    section = ""
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("*"):
            continue
        if not line[0].isspace():
            section = line.split()[0]
        else:
            found[section].append(line.split())
    return found


def blocks_program(folder: Path) -> fw.ScenarioProgram:
    """The two-stage program of an SMPS folder whose scenarios are products of BLOCKS."""
    name = folder.name
    core, times = (sections(folder / f"{name}.{kind}") for kind in ("cor", "tim"))
    kinds = {row: kind for kind, row in core["ROWS"]}
    objective = next(row for row, kind in kinds.items() if kind == "N")
    entries = {
        (words[0], row): float(value)
        for words in core["COLUMNS"]
        for row, value in zip(words[1::2], words[2::2], strict=True)
    }
    columns = list(dict.fromkeys(column for column, _ in entries))
    right = defaultdict(float)
    for words in core["RHS"]:
        right |= {row: float(v) for row, v in zip(words[1::2], words[2::2], strict=True)}
    assert not core["BOUNDS"]
    assert not core["RANGES"]
    n_first = columns.index(times["PERIODS"][1][0])

    realisations: dict[str, list[tuple[float, dict[tuple[str, str], float]]]] = defaultdict(list)
    for words in sections(folder / f"{name}.sto")["BLOCKS"]:
        if words[0] == "BL":
            block = realisations[words[1]]
            # A realisation inherits what it does not name from the first one.
            block.append((float(words[3]), dict(block[0][1]) if block else {}))
        else:
            changed = zip(words[1::2], words[2::2], strict=True)
            block[-1][1].update({(words[0], row): float(value) for row, value in changed})

    rows = [row for row in kinds if row != objective]
    place = {name: i for i, name in enumerate(rows)}
    column_place = {name: i for i, name in enumerate(columns)}
    A = np.zeros((len(rows), len(columns)))
    for (column, row), value in entries.items():
        if row != objective:
            A[place[row], column_place[column]] = value
    b = np.array([right[row] for row in rows])
    uncertain = {row for block in realisations.values() for _, part in block for _, row in part}
    late = np.array([row in uncertain or A[i, n_first:].any() for i, row in enumerate(rows)])
    weights, matrices = [], []
    for picked in product(*realisations.values()):
        matrix = A.copy()
        for _, part in picked:
            for (column, row), value in part.items():
                matrix[place[row], column_place[column]] = value
        weights.append(np.prod([probability for probability, _ in picked]))
        matrices.append(matrix)

    equal = np.array([kinds[row] == "E" for row in rows])
    sign = np.array([-1.0 if kinds[row] == "G" else 1.0 for row in rows])
    cost = np.array([entries.get((column, objective), 0.0) for column in columns])
    stacked = torch.tensor(np.stack(matrices) * sign[:, None])[None]
    b = torch.tensor(b * sign)
    first, second = torch.tensor(~late & ~equal), torch.tensor(late & ~equal)
    eye_z, eye_u = torch.eye(n_first).double(), torch.eye(len(columns) - n_first).double()
    M = len(weights)
    return fw.ScenarioProgram(
        torch.tensor(np.array(weights))[None],
        torch.tensor(cost[:n_first])[None],
        G=torch.cat([stacked[0, 0, first][:, :n_first], -eye_z])[None],
        h=torch.cat([b[first], torch.zeros(n_first)])[None],
        E=stacked[:, 0, torch.tensor(~late & equal), :n_first],
        e=b[torch.tensor(~late & equal)][None],
        d=torch.tensor(cost[n_first:])[None, None],
        T=stacked[:, :, second, :n_first],
        W=torch.cat([stacked[:, :, second, n_first:], -eye_u.expand(1, M, -1, -1)], 2),
        r=torch.cat([b[second], torch.zeros(len(eye_u))])[None, None],
        F=stacked[:, :, torch.tensor(late & equal), :n_first],
        V=stacked[:, :, torch.tensor(late & equal), n_first:],
        s=b[torch.tensor(late & equal)][None, None],
    )


def test_a_program_whose_path_is_slow_is_followed_to_its_end():
    """stocfor2: the residuals stand still for dozens of iterations while the barrier falls."""
    program = blocks_program(shared_folder("smps") / "stocfor2")
    solution = fw.solve_program(program, fw.InteriorPointSolver())
    exact = fw.solve_program(program, fw.ReferenceSolver())
    torch.testing.assert_close(solution.objective, exact.objective, rtol=1e-7, atol=0)
